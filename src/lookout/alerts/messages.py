"""News as a message: a short title, the checks in the report's order, and what the statuses and reasons mean."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from lookout.base.durations import format_duration
from lookout.base.instants import format_second
from lookout.core.episodes import News
from lookout.core.model import Check
from lookout.core.services import SERVICES
from lookout_reader.statuses import TROUBLE_STATUSES
from lookout_reader.words import NOTES, reason_text, status_text

RowNames = Mapping[Check, str]
NO_CAUSES: Final[Mapping[Check, str]] = {}

MOST_LISTED: Final = 20
_OVER: Final = ("ended", "left")
_BAD: Final = (*TROUBLE_STATUSES, "unknown")
# What one check and what several do, in the order of a message.
_HEADINGS: Final[dict[str, tuple[str, str]]] = {
    **{status: (f"is {status}", f"are {status}") for status in _BAD},
    **{f"still {status}": (f"is still {status}", f"are still {status}") for status in _BAD},
    "improved": ("improved", "improved"),
    "recovered": ("recovered", "recovered"),
    "no longer watched": ("is no longer watched", "are no longer watched"),
}


class Names(Struct, frozen=True):
    """What messages call chains, by their ids, and services, in the report's order."""

    chains: dict[int, str]
    services: tuple[str, ...]


NAMES_OF_THE_FIVE: Final = Names({}, SERVICES.names)


class Message(NamedTuple):
    """What is sent: plain text. It is over if nothing in it is bad any more."""

    title: str
    body: str
    is_over: bool = False


def write_message(
    news: Iterable[News], names: Names = NAMES_OF_THE_FIVE, causes: Mapping[Check, str] = NO_CAUSES
) -> Message:
    """All news for one target in one message, with the causes of what is bad now."""
    ordered = sorted(_without_repeats(news), key=lambda each: (*_place(each.check, names.services), each.since_at))
    by_heading = {heading: [each for each in ordered if _choose_heading(each) == heading] for heading in _HEADINGS}
    sections = {heading: under for heading, under in by_heading.items() if under}
    rows = {each.check: _name(each.check, names.chains) for each in ordered}
    body = "\n".join((*_list_checks(sections, rows, causes), "", *_explain(ordered)))
    return Message(f"Lookout: {_write_title(sections, rows)}", body, all(each.kind in _OVER for each in ordered))


def write_sample() -> Message:
    """A message that says only that messages arrive; it rings as a bad one does."""
    return Message(
        "Lookout: a test", "This is a test of Lookout's alerts. Nothing is wrong, and nothing is to be done."
    )


def write_restored(at: int) -> Message:
    """The monitor goes on from a backup, and does not know which alerts it sent since. This message ends them: what is
    still bad begins again."""
    body = (
        f"The monitor goes on from a backup of {format_second(at)}, and does not know what it reported after that.",
        "What is still bad is reported again. Other alerts from after that time are over, or cannot be seen now;",
        "no message will report their end.",
        "",
        NOTES[0].text,
    )
    return Message("Lookout: restored from a backup", "\n".join(body), is_over=True)


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
    match news.kind:
        case "began":
            return news.status
        case "goes-on":
            return f"still {news.status}"
        case "ended":
            return "recovered" if news.status == "current" else "improved"
        case "left":
            return "no longer watched"


def _write_title(sections: dict[str, list[News]], names: RowNames) -> str:
    checks = {heading: list(dict.fromkeys(each.check for each in news)) for heading, news in sections.items()}
    (heading, first), *others = checks.items()
    if not others and len(first) == 1:
        return f"{names[first[0]]} {_HEADINGS[heading][0]}"
    noun = "check" if len(first) == 1 else "checks"
    parts = [f"{len(first)} {noun} {_verb(heading, len(first))}"]
    parts += [f"{len(these)} {_verb(heading, len(these))}" for heading, these in others]
    return ", ".join(parts)


def _verb(heading: str, count: int) -> str:
    one, several = _HEADINGS[heading]
    return one if count == 1 else several


def _list_checks(sections: dict[str, list[News]], names: RowNames, causes: Mapping[Check, str]) -> Iterator[str]:
    room = MOST_LISTED
    for heading, news in sections.items():
        if room > 0:
            yield f"{heading[0].upper()}{heading[1:]}:"
            yield from (f"- {names[each.check]}: {_write_line(each, causes.get(each.check))}" for each in news[:room])
        room -= len(news)
    if room < 0:
        yield f"and {-room} more"


def _write_line(news: News, cause: str | None) -> str:
    why = news.reason if cause is None else f"{news.reason} ({cause})"
    since = f"since {format_second(news.since_at)}"
    match news.kind:
        case "began" | "goes-on":
            return f"{why}, {since}, {_format_lasted(news)}"
        case "ended":
            at = format_second(news.at)
            return f"{news.status} at {at}, was {news.was} {since}, {_format_lasted(news)}"
        case "left":
            return f"was {news.was} {since}; whether it recovered is not known"


def _format_lasted(news: News) -> str:
    """From the first to the last, and how much of it was seen, where the two differ."""
    whole, seen = format_duration(max(news.at - news.since_at, news.seen_ms)), format_duration(news.seen_ms)
    return whole if whole == seen else f"{whole}, of which {seen} were watched"


def _name(check: Check, chain_names: Mapping[int, str]) -> str:
    if check.chain_id is None:
        return check.service
    # A chain that was removed from the configuration has lost its name.
    return f"{check.service} on {chain_names.get(check.chain_id, f'chain {check.chain_id}')}"


def _explain(news: Sequence[News]) -> Iterator[str]:
    """The public words for what occurs, and what the whole does not say (C12)."""
    known = [each for each in news if each.kind != "left"]
    yield from (f"{status}: {status_text(status)}" for status in dict.fromkeys(each.status for each in known))
    yield from (f"{reason}: {reason_text(reason)}" for reason in dict.fromkeys(each.reason for each in known))
    yield NOTES[0].text
