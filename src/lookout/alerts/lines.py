"""The lines of a message: the checks in groups, each with its cause and what to do next, and what is said of all."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from shlex import quote
from typing import Final, TypeVar

from msgspec import to_builtins

from lookout.alerts.deployment import Deployment
from lookout.alerts.effects import describe_effect
from lookout.alerts.event import AlertFacts
from lookout.base.durations import format_duration
from lookout.base.instants import format_second
from lookout.core.causes import choose_next_step, choose_step_without_head, describe_cause
from lookout.core.episodes import News
from lookout.core.model import Check, Reason
from lookout.core.notices import MOST
from lookout_reader.statuses import TROUBLE_STATUSES
from lookout_reader.words import REASON_TEXTS, status_text

RowNames = Mapping[Check, str]
T = TypeVar("T")

MOST_LISTED: Final = 20
OVER: Final = ("ended", "left")
UNJUDGED: Final = "cannot be judged"  # of what is unknown: that it is down is not said
_NOTHING_KNOWN: Final = AlertFacts()
_WITHOUT_ANSWER: Final = ("unavailable", "unknown")
_ROUNDING_MS: Final = 2_000
# What to do where no cause is known.
_LOOK_AT_MONITOR: Final = "look at the monitor's log: it lacks something (docs/upkeep.md), or its probes hang"
_EXPIRED: Final = "the monitor has observed nothing since its last reading expired"
LOOK_AT_NETWORK: Final = "Next: first look at this machine's own network: nothing that is watched answers usefully."
_ASK_NOW: Final = "run `lookout probe`: it says why"


def is_trouble(news: News) -> bool:
    """Whether there is something to do about it: also after an episode, if its check is still bad."""
    return news.kind not in OVER or (news.kind == "ended" and news.status in TROUBLE_STATUSES)


def list_checks(sections: dict[str, list[News]], names: RowNames, facts: Mapping[News, AlertFacts]) -> Iterator[str]:
    """Group after group, each with what to do next and an empty line at its end."""
    room = MOST_LISTED
    for heading, section in sections.items():
        for group in _group(section, facts):
            write = _write_over if group[0].kind in OVER else _write_bad
            yield from write(f"{heading[0].upper()}{heading[1:]}", group, names, facts, max(0, room))
            if is_trouble(group[0]):
                yield f"Next: {_choose_next_step(group[0], facts)}."
            yield ""
            room -= len(group)


def _group(news: Iterable[News], facts: Mapping[News, AlertFacts]) -> Iterable[list[News]]:
    """What needs the same to be done, together, and all of which nothing is to be done."""
    groups: dict[str, list[News]] = {}
    for each in news:
        groups.setdefault(_choose_next_step(each, facts) if is_trouble(each) else "", []).append(each)
    return groups.values()


def _write_bad(
    heading: str, group: Sequence[News], names: RowNames, facts: Mapping[News, AlertFacts], room: int
) -> Iterator[str]:
    whys = {_describe_why(each, facts) for each in group}
    yield f"{heading} ({whys.pop()}):" if len(whys) == 1 else f"{heading}:"
    for each in group[:room]:
        why = f"{_describe_why(each, facts)}, " if whys else ""
        yield f"- {names[each.check]}: {why}{_write_time(each)}"
        yield from _write_last_answer(each, facts)
    yield from _count_others(group, room)
    # By their chain as well: two chains may have one name.
    endpoints = {
        (each.check.chain_id, endpoint.name): endpoint.does
        for each in group[:room]
        for endpoint in facts.get(each, _NOTHING_KNOWN).endpoints
    }
    yield from ("RPC endpoints:", *(f"  {name}: {does}" for (_, name), does in endpoints.items())) if endpoints else ()


def _write_over(
    heading: str, group: Sequence[News], names: RowNames, facts: Mapping[News, AlertFacts], room: int
) -> Iterator[str]:
    """How long each lasted, what it was and what it is now; of several with the same course that is said once."""
    yield f"{heading}:"
    courses = [_write_course(each, facts) for each in group]
    is_shared = len(group) > 1 and len(set(courses)) == 1
    for each, course in zip(group[:room], courses, strict=False):
        yield f"- {names[each.check]}: {_write_time(each)}"
        yield from () if is_shared else (f"  {course}",)
    yield from _count_others(group, room)
    if is_shared:
        yield f"Each {courses[0]}"


def _count_others(group: Sequence[News], room: int) -> Iterator[str]:
    """Say how many are not listed."""
    others = len(group[room:])
    if others:
        yield f"- and {others} more" if room else f"- {others} {'check' if others == 1 else 'checks'}"


def _describe_why(news: News, facts: Mapping[News, AlertFacts]) -> str:
    known = facts.get(news, _NOTHING_KNOWN)
    if known.cause is not None:
        return describe_cause(known.cause)
    return _EXPIRED if known.has_expired and news.reason == "no-observation" else _describe_reason(news.reason)


def _describe_reason(reason: Reason) -> str:
    """The public sentence, as a part of one."""
    text = REASON_TEXTS[reason]
    return f"{text[0].lower()}{text[1:].removesuffix('.')}"


def _choose_next_step(news: News, facts: Mapping[News, AlertFacts]) -> str:
    known = facts.get(news, _NOTHING_KNOWN)
    if known.cause == "no_head":
        step = choose_step_without_head(each.cause for each in known.endpoints if each.cause is not None)
    else:
        step = None if known.cause is None else choose_next_step(known.cause)
    if step is not None:
        return step
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


def _write_course(news: News, facts: Mapping[News, AlertFacts]) -> str:
    """What it was, and what it is now."""
    causes = [describe_cause(each) for each in news.causes]
    why = f": at first {causes[0]}, at last {causes[1]}" if len(causes) > 1 else "".join(f": {each}" for each in causes)
    was = f"{'could not be judged' if news.was == 'unknown' else f'was {news.was}'}{why}"
    if news.kind == "left":
        return f"{was}; whether it recovered is not known"
    return f"{was}; is {news.status} now{'' if news.status == 'current' else f': {_describe_why(news, facts)}'}"


def _write_last_answer(news: News, facts: Mapping[News, AlertFacts]) -> Iterator[str]:
    """When it was last seen to work, of what does not answer or cannot be judged; what is behind answers now."""
    if news.status not in _WITHOUT_ANSWER or news not in facts:
        return
    fact = facts[news]
    what = "last judged" if news.status == "unknown" else "last good answer"
    numbers = ", ".join(f"{name} {number}" for name, number in to_builtins(fact.last_metrics).items())
    if fact.last_success_at is None:
        yield f"  {what}: never"
    else:
        yield f"  {what}: {format_second(fact.last_success_at)}{f' ({numbers})' if numbers else ''}"


def _format_lasted(news: News) -> str:
    """How long it lasted from the first to the last, and how much of it was seen, where the two differ by more than
    rounding."""
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
        yield from (f"To silence this: {command}" for command in _write_silences(bad, deployment.config))


def _write_silences(bad: Iterable[News], config: str) -> Iterator[str]:
    """Commands that silence these and nothing else. Chains are given by their ids, which are never ambiguous."""
    which = f"-c {quote(config)} " if config else ""
    chains: dict[str, dict[int | None, None]] = {}
    for each in bad:
        chains.setdefault(each.check.service, {})[each.check.chain_id] = None
    services: dict[tuple[int | None, ...], list[str]] = {}
    for service, on in chains.items():
        services.setdefault(tuple(on), []).append(service)
    for chain_ids, names in services.items():
        for some, on_some in product(_split(names), _split(chain_ids)):
            options = [f"--service {each}" for each in some]
            options += [f"--chain {each}" for each in on_some if each is not None]
            yield f"lookout silence add {which}{' '.join(options)} --for 2h"


def _split(names: Sequence[T]) -> Iterator[Sequence[T]]:
    """Split into parts of as many as one silence can name."""
    return (names[start : start + MOST] for start in range(0, len(names), MOST))


def say_where_to_look(deployment: Deployment) -> str:
    ask = "To see more: `lookout probe` asks everything now"
    return (
        f"{ask}; /sources on the monitor's admin port has the last answers." if deployment.has_admin_port else f"{ask}."
    )
