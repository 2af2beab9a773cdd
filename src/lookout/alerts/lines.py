"""The lines of a message: the checks in groups, each with its cause and what to do next, and what is said of all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import to_builtins

from lookout.alerts.deployment import Deployment
from lookout.alerts.effects import describe_effect
from lookout.alerts.event import Facts
from lookout.base.durations import format_duration
from lookout.base.instants import format_second
from lookout.core.causes import choose_next_step, describe_cause
from lookout.core.episodes import News
from lookout.core.model import Check, Reason
from lookout.core.notices import MOST
from lookout_reader.words import REASON_TEXTS, status_text

RowNames = Mapping[Check, str]

MOST_LISTED: Final = 20
OVER: Final = ("ended", "left")
UNJUDGED: Final = "cannot be judged"  # of what is unknown: that it is down is not said
_NOTHING_KNOWN: Final = Facts()
_WITHOUT_ANSWER: Final = ("unavailable", "unknown")
_ROUNDING_MS: Final = 2_000
# What to do where no cause is known.
_LOOK_AT_MONITOR: Final = "look at the monitor's log: it lacks something (docs/upkeep.md), or its probes hang"
_ASK_NOW: Final = "run `lookout probe`: it says why"


def list_checks(sections: dict[str, list[News]], names: RowNames, facts: Mapping[Check, Facts]) -> Iterator[str]:
    """Group after group, each with what to do next and an empty line at its end."""
    room = MOST_LISTED
    for heading, section in sections.items():
        for group in _group(section, facts):
            if room > 0:
                yield from _write_group(f"{heading[0].upper()}{heading[1:]}", group, names, facts, room)
                yield ""
            room -= len(group)
    if room < 0:
        yield from (f"and {-room} more", "")


def _group(news: Iterable[News], facts: Mapping[Check, Facts]) -> Iterable[list[News]]:
    """What needs the same to be done, together, and all that is over."""
    groups: dict[str, list[News]] = {}
    for each in news:
        groups.setdefault("" if each.kind in OVER else _choose_next_step(each, facts), []).append(each)
    return groups.values()


def _write_group(
    heading: str, group: Sequence[News], names: RowNames, facts: Mapping[Check, Facts], room: int
) -> Iterator[str]:
    if group[0].kind in OVER:
        yield from (f"{heading}:", *_write_over(group[:room], names, facts))
        return
    whys = {_describe_why(each, facts) for each in group}
    yield f"{heading} ({whys.pop()}):" if len(whys) == 1 else f"{heading}:"
    for each in group[:room]:
        why = f"{_describe_why(each, facts)}, " if whys else ""
        yield f"- {names[each.check]}: {why}{_write_time(each)}"
        yield from _write_last_answer(each, facts)
    endpoints = {name: does for each in group for name, does in facts.get(each.check, _NOTHING_KNOWN).endpoints.items()}
    yield from ("RPC endpoints:", *(f"  {name}: {does}" for name, does in endpoints.items())) if endpoints else ()
    yield f"Next: {_choose_next_step(group[0], facts)}."


def _write_over(group: Sequence[News], names: RowNames, facts: Mapping[Check, Facts]) -> Iterator[str]:
    """How long each lasted, what it was and what it is now; of several with the same course that is said once."""
    courses = {each: _write_course(each, facts) for each in group}
    is_shared = len(group) > 1 and len(set(courses.values())) == 1
    for each, course in courses.items():
        yield f"- {names[each.check]}: {_write_time(each)}"
        yield from () if is_shared else (f"  {course}",)
    if is_shared:
        yield f"Each {courses[group[0]]}"


def _find_cause(news: News, facts: Mapping[Check, Facts]) -> str | None:
    return facts.get(news.check, _NOTHING_KNOWN).cause


def _describe_why(news: News, facts: Mapping[Check, Facts]) -> str:
    cause = _find_cause(news, facts)
    return _describe_reason(news.reason) if cause is None else describe_cause(cause)


def _describe_reason(reason: Reason) -> str:
    """The public sentence, as a part of one."""
    text = REASON_TEXTS[reason]
    return f"{text[0].lower()}{text[1:].removesuffix('.')}"


def _choose_next_step(news: News, facts: Mapping[Check, Facts]) -> str:
    cause = _find_cause(news, facts)
    if cause is not None and (known := choose_next_step(cause)):
        return known
    return _LOOK_AT_MONITOR if news.reason == "no-observation" else _ASK_NOW


def _write_time(news: News) -> str:
    since, lasted = format_second(news.since_at), _format_lasted(news)
    match news.kind:
        case "began" | "goes-on":
            return f"for {lasted}, since {since}"
        case "ended":
            return f"after {lasted}, from {since} to {format_second(news.at)}"
        case "left":
            return f"after {lasted}, since {since}"


def _write_course(news: News, facts: Mapping[Check, Facts]) -> str:
    """What it was, and what it is now."""
    causes = [describe_cause(each) for each in news.causes]
    why = f": at first {causes[0]}, at last {causes[1]}" if len(causes) > 1 else "".join(f": {each}" for each in causes)
    was = f"{'could not be judged' if news.was == 'unknown' else f'was {news.was}'}{why}"
    if news.kind == "left":
        return f"{was}; whether it recovered is not known"
    return f"{was}; is {news.status} now{'' if news.status == 'current' else f': {_describe_why(news, facts)}'}"


def _write_last_answer(news: News, facts: Mapping[Check, Facts]) -> Iterator[str]:
    """When it was last seen to work, of what does not answer or cannot be judged; what is behind answers now."""
    if news.status not in _WITHOUT_ANSWER or news.check not in facts:
        return
    fact = facts[news.check]
    what = "last judged" if news.status == "unknown" else "last good answer"
    numbers = ", ".join(f"{name} {number}" for name, number in to_builtins(fact.last_metrics).items())
    if fact.last_success_at is None:
        yield f"  {what}: never"
    else:
        yield f"  {what}: {format_second(fact.last_success_at)}{f' ({numbers})' if numbers else ''}"


def _format_lasted(news: News) -> str:
    """From the first to the last, and how much of it was seen, where the two differ by more than rounding."""
    whole_ms = max(news.at - news.since_at, news.seen_ms)
    whole, seen = format_duration(whole_ms), format_duration(news.seen_ms)
    return whole if whole_ms - news.seen_ms < _ROUNDING_MS else f"{whole}, of which {seen} were watched"


def explain_trouble(bad: Sequence[News], deployment: Deployment) -> Iterator[str]:
    """What the statuses mean, what users may notice of them, and how to silence them."""
    for status in dict.fromkeys(each.status for each in bad):
        yield f"{UNJUDGED if status == 'unknown' else status}: {status_text(status)}"
    effects = (describe_effect(each.check.service, each.status, each.reason) for each in bad)
    if noticed := list(dict.fromkeys(effect for effect in effects if effect is not None)):
        yield f"What users may notice: {'; '.join(noticed)}."
    if deployment.has_admin_port:
        yield from (f"To silence this: {command}" for command in _write_silences(each.check for each in bad))


def _write_silences(checks: Iterable[Check]) -> Iterator[str]:
    """Commands that silence these and nothing else, or a service as a whole if it is on more chains than a silence can
    name. Chains are given by their ids, which are never ambiguous."""
    chains: dict[str, dict[int | None, None]] = {}
    for check in checks:
        chains.setdefault(check.service, {})[check.chain_id] = None
    services: dict[tuple[int | None, ...], list[str]] = {}
    for service, on in chains.items():
        services.setdefault(tuple(on), []).append(service)
    for chain_ids, names in services.items():
        options = [f"--service {each}" for each in names]
        options += [f"--chain {each}" for each in chain_ids if each is not None and len(chain_ids) <= MOST]
        yield f"lookout silence add {' '.join(options)} --for 2h"


def say_where_to_look(deployment: Deployment) -> str:
    ask = "To see more: `lookout probe` asks everything now"
    return (
        f"{ask}; /sources on the monitor's admin port has the last answers." if deployment.has_admin_port else f"{ask}."
    )
