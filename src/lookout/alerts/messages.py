"""News as a message: a short title, the checks in the report's order, and what the words in it mean."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from msgspec import to_builtins

from lookout.alerts.deployment import DEPLOYMENT_OF_THE_FIVE, Deployment
from lookout.alerts.event import NO_FACTS, Event, Facts, make_event, make_item
from lookout.base.durations import format_duration
from lookout.base.instants import format_second
from lookout.core.causes import code_of
from lookout.core.episodes import News
from lookout.core.model import Check
from lookout_reader.statuses import BY_WORD, TROUBLE_STATUSES
from lookout_reader.words import NOTES, REASON_TEXTS, reason_text, status_text

RowNames = Mapping[Check, str]

_NOTHING_KNOWN: Final = Facts()
_WITHOUT_ANSWER: Final = ("unavailable", "unknown")
MOST_LISTED: Final = 20
_OVER: Final = ("ended", "left")
_UNJUDGED: Final = "cannot be judged"  # of what is unknown: that it is down is not said
# What one check and what several do, in the order of a message.
_HEADINGS: Final[dict[str, tuple[str, str]]] = {
    **{status: (f"is {status}", f"are {status}") for status in TROUBLE_STATUSES},
    _UNJUDGED: (_UNJUDGED, _UNJUDGED),
    **{f"still {status}": (f"is still {status}", f"are still {status}") for status in TROUBLE_STATUSES},
    f"still {_UNJUDGED}": (f"still {_UNJUDGED}",) * 2,
    "bad in another way": ("is bad in another way", "are bad in another way"),
    "can be judged again": ("can be judged again",) * 2,
    "improved": ("improved", "improved"),
    "recovered": ("recovered", "recovered"),
    "no longer watched": ("is no longer watched", "are no longer watched"),
}
_WHERE_TO_LOOK: Final = (
    "What each source and RPC endpoint answers: /sources on the monitor's admin port. `lookout probe` asks them now."
)


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
    by_heading = {heading: [each for each in ordered if _choose_heading(each) == heading] for heading in _HEADINGS}
    sections = {heading: under for heading, under in by_heading.items() if under}
    rows = {each.check: _name(each.check, deployment.chains) for each in ordered}
    is_over = not any(map(_is_bad, ordered))
    body = (
        *_list_checks(sections, rows, facts),
        "",
        *_explain(list(chain.from_iterable(sections.values())), facts, deployment.cause_texts),
        *(() if is_over else (_WHERE_TO_LOOK,)),
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
            return "can be judged again"
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
    room = MOST_LISTED
    for heading, section in sections.items():
        for shared, news in _group_by_why(section, facts).items():
            if room > 0:
                yield f"{heading[0].upper()}{heading[1:]}{f', all {shared}' if shared else ''}:"
                for each in news[:room]:
                    why = "" if shared else f"{_write_why(each, facts)}, "
                    yield f"- {names[each.check]}: {_write_line(each, why)}"
                    yield from _write_last_answer(each, facts)
            room -= len(news)
    if room < 0:
        yield f"and {-room} more"


def _group_by_why(news: Sequence[News], facts: Mapping[Check, Facts]) -> dict[str, list[News]]:
    """Those that are bad for the same reason and cause, by these: it is said once. The others are under ""."""
    count = Counter(_write_why(each, facts) for each in news if each.kind not in _OVER)
    groups: dict[str, list[News]] = {}
    for each in news:
        why = _write_why(each, facts)
        groups.setdefault(why if count[why] > 1 else "", []).append(each)
    return groups


def _write_why(news: News, facts: Mapping[Check, Facts]) -> str:
    cause = facts.get(news.check, _NOTHING_KNOWN).cause
    return news.reason if cause is None else f"{news.reason} ({cause})"


def _write_line(news: News, why: str) -> str:
    since = f"since {format_second(news.since_at)}"
    was = "could not be judged" if news.was == "unknown" else f"was {news.was}"
    match news.kind:
        case "began" | "goes-on":
            return f"{why}{since}, {_format_lasted(news)}"
        case "ended":
            now = f"{news.status}, {why}" if _is_bad(news) else f"{news.status} "
            return f"{now}at {format_second(news.at)}, {was} {since}, {_format_lasted(news)}"
        case "left":
            return f"{was} {since}; whether it recovered is not known"


def _write_last_answer(news: News, facts: Mapping[Check, Facts]) -> Iterator[str]:
    """When it was last seen to work, of what does not answer or cannot be judged; what is behind answers now."""
    if news.kind in _OVER or news.status not in _WITHOUT_ANSWER or news.check not in facts:
        return
    fact = facts[news.check]
    what = "last judged" if news.status == "unknown" else "last good answer"
    numbers = ", ".join(f"{name} {number}" for name, number in to_builtins(fact.last_metrics).items())
    if fact.last_success_at is None:
        yield f"  {what}: never"
    else:
        yield f"  {what}: {format_second(fact.last_success_at)}{f' ({numbers})' if numbers else ''}"


def _format_lasted(news: News) -> str:
    """From the first to the last, and how much of it was seen, where the two differ."""
    whole, seen = format_duration(max(news.at - news.since_at, news.seen_ms)), format_duration(news.seen_ms)
    return whole if whole == seen else f"{whole}, of which {seen} were watched"


def _name(check: Check, chain_names: Mapping[int, str]) -> str:
    return check.service if check.chain_id is None else f"{check.service} on {_name_chain(check.chain_id, chain_names)}"


def _name_chain(chain_id: int, chain_names: Mapping[int, str]) -> str:
    return chain_names.get(chain_id, f"chain {chain_id}")  # one that was removed has lost its name


def _explain(news: Sequence[News], facts: Mapping[Check, Facts], cause_texts: Mapping[str, str]) -> Iterator[str]:
    """What the statuses, reasons and causes that occur mean."""
    known = [each for each in news if each.kind != "left"]
    for status in dict.fromkeys(each.status for each in known):
        yield f"{_UNJUDGED if status == 'unknown' else status}: {status_text(status)}"
    yield from (f"{reason}: {reason_text(reason)}" for reason in dict.fromkeys(each.reason for each in known))
    causes = (facts[each.check].cause for each in known if each.check in facts)
    for code in dict.fromkeys(code_of(cause) for cause in causes if cause is not None):
        if code in cause_texts and code not in REASON_TEXTS:
            yield f"{code}: {cause_texts[code]}"
