"""News as a message: a short title, the checks in the report's order, and what to do next."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import to_builtins

from lookout.alerts.deployment import DEPLOYMENT_OF_THE_FIVE, Deployment
from lookout.alerts.effects import describe_effect
from lookout.alerts.event import NO_FACTS, Event, Facts, make_event, make_item
from lookout.base.durations import format_duration
from lookout.base.instants import format_second
from lookout.core.causes import choose_next_step, describe_cause
from lookout.core.episodes import News
from lookout.core.model import Check, Reason
from lookout_reader.statuses import BY_WORD, TROUBLE_STATUSES
from lookout_reader.words import NOTES, REASON_TEXTS, status_text

RowNames = Mapping[Check, str]

_NOTHING_KNOWN: Final = Facts()
_WITHOUT_ANSWER: Final = ("unavailable", "unknown")
MOST_LISTED: Final = 20
_OVER: Final = ("ended", "left")
_ROUNDING_MS: Final = 2_000
# What to do where no cause is known.
_LOOK_AT_MONITOR: Final = "look at the monitor's log: it lacks something (docs/upkeep.md), or its probes hang"
_ASK_NOW: Final = "run `lookout probe`: it says why"
_UNJUDGED: Final = "cannot be judged"  # of what is unknown: that it is down is not said


def _now(status: str) -> str:
    """The heading of what could not be judged and is this now."""
    return f"{status} now (could not be judged before)"


# What one check and what several do, in the order of a message.
_HEADINGS: Final[dict[str, tuple[str, str]]] = {
    **{status: (f"is {status}", f"are {status}") for status in TROUBLE_STATUSES},
    _UNJUDGED: (_UNJUDGED, _UNJUDGED),
    **{f"still {status}": (f"is still {status}", f"are still {status}") for status in TROUBLE_STATUSES},
    f"still {_UNJUDGED}": (f"still {_UNJUDGED}",) * 2,
    "bad in another way": ("is bad in another way", "are bad in another way"),
    **{_now(status): (f"is {_now(status)}", f"are {_now(status)}") for status in (*TROUBLE_STATUSES, "current")},
    "improved": ("improved", "improved"),
    "recovered": ("recovered", "recovered"),
    "no longer watched": ("is no longer watched", "are no longer watched"),
}


class Message(NamedTuple):
    """What is sent: plain text, and the same as data. It is over if nothing in it is bad any more."""

    title: str
    body: str
    is_over: bool = False
    event: Event | None = None


def write_message(
    news: Iterable[News],
    deployment: Deployment = DEPLOYMENT_OF_THE_FIVE,
    facts: Mapping[Check, Facts] = NO_FACTS,
) -> Message:
    """All news for one target in one message, with what is known of the checks now."""
    ordered = sorted(_without_repeats(news), key=lambda each: (*_place(each.check, deployment.services), each.since_at))
    listed = list(_without_superseded(ordered))
    by_heading = {heading: [each for each in listed if _choose_heading(each) == heading] for heading in _HEADINGS}
    sections = {heading: under for heading, under in by_heading.items() if under}
    rows = {each.check: _name(each.check, deployment.chains) for each in ordered}
    is_over = not any(map(_is_bad, ordered))
    body = (
        *_list_checks(sections, rows, facts),
        *_explain([each for section in sections.values() for each in section if each.kind not in _OVER], deployment),
        *(() if is_over else (_say_where_to_look(deployment),)),
        *_sign(deployment),
    )
    items = (make_item(each, facts.get(each.check, _NOTHING_KNOWN), deployment) for each in ordered)
    event = make_event("checks", deployment, items, is_over=is_over)
    return Message(_write_title(deployment, _sum_up(sections, rows, deployment)), "\n".join(body), is_over, event)


def write_sample(deployment: Deployment = DEPLOYMENT_OF_THE_FIVE) -> Message:
    """A message that says only that messages arrive; it rings as a bad one does."""
    body = ("This is a test of Lookout's alerts. Nothing is wrong, and nothing is to be done.", "", *_sign(deployment))
    event = make_event("sample", deployment)
    return Message(_write_title(deployment, "a test"), "\n".join(body), event=event)


def write_restored(at: int, deployment: Deployment = DEPLOYMENT_OF_THE_FIVE) -> Message:
    """The monitor goes on from a backup, and does not know which alerts it sent since. This message ends them: what is
    still bad begins again."""
    body = (
        f"The monitor goes on from a backup of {format_second(at)}, and does not know what it reported after that.",
        "What is still bad is reported again. Other alerts from after that time are over, or cannot be seen now;",
        "no message will report their end.",
        "",
        *_sign(deployment),
    )
    event = make_event("restored", deployment, is_over=True)
    return Message(_write_title(deployment, "restored from a backup"), "\n".join(body), is_over=True, event=event)


def _write_title(deployment: Deployment, what: str) -> str:
    if "lookout" in deployment.name.casefold():  # it is said once
        return f"{deployment.name}: {what}"
    return f"Lookout ({deployment.name}): {what}" if deployment.name else f"Lookout: {what}"


def _sign(deployment: Deployment) -> Iterator[str]:
    """Whose message it is, where there is more to see, and what the whole does not say (C12)."""
    if deployment.link:
        yield f"The status page: {deployment.link}"
    if deployment.operator:
        yield f"The monitor is run by {deployment.operator}."
    yield NOTES[0].text


def _place(check: Check, service_names: Sequence[str]) -> tuple[int, int]:
    """What to sort checks by (R12); those of a service that was removed come last."""
    known = check.service in service_names
    return service_names.index(check.service) if known else len(service_names), check.chain_id or 0


def _without_repeats(news: Iterable[News]) -> Iterator[News]:
    """Of what began and ended within one message only the end. Two rules may then say the same of a check."""
    everything = tuple(news)
    over = {_episode(each) for each in everything if each.kind in _OVER}
    left = (each for each in everything if each.kind in _OVER or _episode(each) not in over)
    yield from {(each.kind, each.check, each.since_at): each for each in left}.values()


def _without_superseded(news: Sequence[News]) -> Iterator[News]:
    """That a check can be judged again is not listed where the same message says that it is bad."""
    began = {each.check for each in news if each.kind == "began"}
    yield from (each for each in news if each.kind != "ended" or each.was != "unknown" or each.check not in began)


def _episode(news: News) -> tuple[str, Check, int]:
    return news.rule, news.check, news.since_at


def _choose_heading(news: News) -> str:
    bad = _UNJUDGED if news.status == "unknown" else news.status
    match news.kind:
        case "began":
            return bad
        case "goes-on":
            return f"still {bad}"
        case "ended" if news.was == "unknown":
            return _now(news.status)
        case "ended" if _is_bad(news):
            return "bad in another way"
        case "ended":
            return "recovered" if news.status == "current" else "improved"
        case "left":
            return "no longer watched"


def _is_bad(news: News) -> bool:
    """Whether it is bad now: also after the end of an episode of one reason."""
    if news.kind == "ended":
        if news.was == "unknown":  # what it is now has episodes of its own, if the rule counts it
            return False
        return news.status in TROUBLE_STATUSES and BY_WORD[news.status].severity >= BY_WORD[news.was].severity
    return news.kind != "left"


def _sum_up(sections: dict[str, list[News]], names: RowNames, deployment: Deployment) -> str:
    checks = {heading: list(dict.fromkeys(each.check for each in news)) for heading, news in sections.items()}
    (heading, first), *others = checks.items()
    if not others and len(first) == 1:
        return f"{names[first[0]]} {_HEADINGS[heading][0]}"
    noun = "check" if len(first) == 1 else "checks"
    parts = [f"{len(first)} {noun}{_share_chain(first, deployment.chains)} {_verb(heading, len(first))}"]
    parts += [f"{len(these)} {_verb(heading, len(these))}" for heading, these in others]
    return ", ".join(parts)


def _share_chain(checks: Sequence[Check], chain_names: Mapping[int, str]) -> str:
    """The chain that all of them are on, if there is one: what they depend on may be the cause."""
    ids = {check.chain_id for check in checks}
    chain_id = ids.pop()
    return "" if ids or chain_id is None or len(checks) == 1 else f" on {_name_chain(chain_id, chain_names)}"


def _verb(heading: str, count: int) -> str:
    one, several = _HEADINGS[heading]
    return one if count == 1 else several


def _list_checks(sections: dict[str, list[News]], names: RowNames, facts: Mapping[Check, Facts]) -> Iterator[str]:
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
        groups.setdefault("" if each.kind in _OVER else _choose_next_step(each, facts), []).append(each)
    return groups.values()


def _write_group(
    heading: str, group: Sequence[News], names: RowNames, facts: Mapping[Check, Facts], room: int
) -> Iterator[str]:
    if group[0].kind in _OVER:
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


def _name(check: Check, chain_names: Mapping[int, str]) -> str:
    return check.service if check.chain_id is None else f"{check.service} on {_name_chain(check.chain_id, chain_names)}"


def _name_chain(chain_id: int, chain_names: Mapping[int, str]) -> str:
    return chain_names.get(chain_id, f"chain {chain_id}")  # one that was removed has lost its name


def _explain(bad: Sequence[News], deployment: Deployment) -> Iterator[str]:
    """What the statuses mean, what users may notice of them, and how to silence them."""
    for status in dict.fromkeys(each.status for each in bad):
        yield f"{_UNJUDGED if status == 'unknown' else status}: {status_text(status)}"
    effects = (describe_effect(each.check.service, each.status, each.reason) for each in bad)
    if noticed := list(dict.fromkeys(effect for effect in effects if effect is not None)):
        yield f"What users may notice: {'; '.join(noticed)}."
    if deployment.has_admin_port:
        yield from (f"To silence this: {command}" for command in _write_silences(each.check for each in bad))


def _write_silences(checks: Iterable[Check]) -> Iterator[str]:
    """Commands that silence these and nothing else; chains by their ids, which are never ambiguous."""
    chains: dict[str, dict[int | None, None]] = {}
    for check in checks:
        chains.setdefault(check.service, {})[check.chain_id] = None
    services: dict[tuple[int | None, ...], list[str]] = {}
    for service, on in chains.items():
        services.setdefault(tuple(on), []).append(service)
    for chain_ids, names in services.items():
        options = [f"--service {each}" for each in names]
        options += [f"--chain {each}" for each in chain_ids if each is not None]
        yield f"lookout silence add {' '.join(options)} --for 2h"


def _say_where_to_look(deployment: Deployment) -> str:
    ask = "To see more: `lookout probe` asks everything now"
    return (
        f"{ask}; /sources on the monitor's admin port has the last answers." if deployment.has_admin_port else f"{ask}."
    )
