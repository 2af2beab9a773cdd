"""News as a message: a short title, the checks in the report's order, and what to do next."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from lookout.alerts.deployment import DEPLOYMENT_OF_THE_FIVE, Deployment
from lookout.alerts.event import NO_FACTS, AlertEvent, AlertFacts, make_event, make_item
from lookout.alerts.lines import (
    LOOK_AT_NETWORK,
    OVER,
    UNJUDGED,
    RowNames,
    explain_trouble,
    is_trouble,
    list_checks,
    say_where_to_look,
)
from lookout.base.instants import format_second
from lookout.core.episodes import News
from lookout.core.model import Check
from lookout.core.own_clock import describe_clock_error
from lookout_reader.statuses import BY_WORD, TROUBLE_STATUSES
from lookout_reader.words import NOTES

_NOTHING_KNOWN: Final = AlertFacts()


def _now(status: str) -> str:
    """The heading of what could not be judged and is this now."""
    return f"{status} now (could not be judged before)"


# What one check and what several do, in the order of a message.
_HEADINGS: Final[dict[str, tuple[str, str]]] = {
    **{status: (f"is {status}", f"are {status}") for status in TROUBLE_STATUSES},
    UNJUDGED: (UNJUDGED, UNJUDGED),
    **{f"still {status}": (f"is still {status}", f"are still {status}") for status in TROUBLE_STATUSES},
    f"still {UNJUDGED}": (f"still {UNJUDGED}",) * 2,
    "bad in another way": ("is bad in another way", "are bad in another way"),
    **{_now(status): (f"is {_now(status)}", f"are {_now(status)}") for status in (*TROUBLE_STATUSES, "current")},
    "improved": ("improved", "improved"),
    "recovered": ("recovered", "recovered"),
    "no longer watched": ("is no longer watched", "are no longer watched"),
}


class Message(NamedTuple):
    """What is sent: plain text, and the same as data. It is over if all episodes in it are, and none of them
    because its check is bad in another way."""

    title: str
    body: str
    is_over: bool = False
    event: AlertEvent | None = None


def write_message(
    news: Iterable[News],
    deployment: Deployment = DEPLOYMENT_OF_THE_FIVE,
    facts: Mapping[News, AlertFacts] = NO_FACTS,
    *,
    nothing_answers: bool = False,
) -> Message:
    """All news for one target in one message, with what is known beside each, and whether nothing at all answers."""
    ordered = sorted(_without_repeats(news), key=lambda each: (*_place(each.check, deployment.services), each.since_at))
    listed = list(_without_superseded(ordered))
    by_heading = {heading: [each for each in listed if _choose_heading(each) == heading] for heading in _HEADINGS}
    sections = {heading: under for heading, under in by_heading.items() if under}
    rows = {each.check: _name(each.check, deployment.chains) for each in ordered}
    is_over = not any(map(_is_bad, ordered))
    trouble = [each for section in sections.values() for each in section if is_trouble(each)]
    body = (
        *((LOOK_AT_NETWORK, "") if nothing_answers and trouble else ()),
        *list_checks(sections, rows, facts),
        *explain_trouble(trouble, deployment),
        *((say_where_to_look(deployment),) if trouble else ()),
        *_sign(deployment),
    )
    items = (make_item(each, facts.get(each, _NOTHING_KNOWN), deployment) for each in ordered)
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


def write_clock(at: int, error_ms: int, deployment: Deployment = DEPLOYMENT_OF_THE_FIVE) -> Message:
    """This machine's clock is this wrong, or right again if that is 0 (M17)."""
    if error_ms:
        what = describe_clock_error(error_ms)
        body: tuple[str, ...] = (
            f"The answers of most upstreams say that {what}. Its time is {format_second(at)}.",
            "Until it is right, broadcasters are not judged, and readers may take every row for old or unknown.",
            "Next: set the clock of the monitor's machine, and look at what should keep it right (NTP).",
        )
    else:
        what = "this machine's clock is right again"
        body = (f"The answers of most upstreams agree with it again. Its time is {format_second(at)}.",)
    event = make_event("clock", deployment, is_over=not error_ms)
    return Message(_write_title(deployment, what), "\n".join((*body, "", *_sign(deployment))), not error_ms, event)


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
    """Keep only the end of what began and ended within one message. Two rules may then say the same of a check."""
    everything = tuple(news)
    over = {_episode(each) for each in everything if each.kind in OVER}
    left = (each for each in everything if each.kind in OVER or _episode(each) not in over)
    yield from {(each.kind, each.check, each.since_at): each for each in left}.values()


def _without_superseded(news: Sequence[News]) -> Iterator[News]:
    """That a check can be judged again is not listed where the same message has later news of it."""
    newest = {each.check: each for each in sorted(news, key=lambda each: (each.at, not _is_judged_again(each)))}
    yield from (each for each in news if not _is_judged_again(each) or newest[each.check] is each)


def _is_judged_again(news: News) -> bool:
    return news.kind == "ended" and news.was == "unknown"


def _episode(news: News) -> tuple[str, Check, int]:
    return news.rule, news.check, news.since_at


def _choose_heading(news: News) -> str:
    bad = UNJUDGED if news.status == "unknown" else news.status
    match news.kind:
        case "began":
            return bad
        case "goes-on":
            return f"still {bad}"
        case "ended" if _is_judged_again(news):
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
        if _is_judged_again(news):  # what it is now has episodes of its own, if the rule counts it
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


def _name(check: Check, chain_names: Mapping[int, str]) -> str:
    return check.service if check.chain_id is None else f"{check.service} on {_name_chain(check.chain_id, chain_names)}"


def _name_chain(chain_id: int, chain_names: Mapping[int, str]) -> str:
    return chain_names.get(chain_id, f"chain {chain_id}")  # one that was removed has lost its name
