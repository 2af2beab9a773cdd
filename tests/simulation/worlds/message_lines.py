"""The lines of a message: those that are due, and those that its words have."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from lookout.base.instants import format_second
from lookout.core.model import Check
from tests.oracles.alerts import News

_BAD: Final = {status: status for status in ("unavailable", "degraded", "catching-up")} | {
    "cannot be judged": "unknown"
}
_HEADINGS: Final = {
    **{words.capitalize(): ("began", status) for words, status in _BAD.items()},
    **{f"Still {words}": ("goes-on", status) for words, status in _BAD.items()},
    "Recovered": ("ended", "recovered"),
    **{f"{status.capitalize()} now": ("ended", "improved") for status in _BAD},
    "No longer watched": ("left", ""),
}
_HEADING: Final = re.compile(r"(\w[^:]*):")
_LINE: Final = re.compile(r"- (\S+?)(?: on (?:chain )?(\d+))?: .*?(?:since|from) (\S+Z)( to \S+Z)?(?:; .*)?")
_MORE: Final = re.compile(r"  \S.*|Next: .*\.|RPC endpoints:|What users .*|To .*|")  # of what is above it


class About(NamedTuple):
    """One line of a message: what happened to a check, in an episode that began then."""

    kind: str
    check: Check
    since: str


Lines = Mapping[About, str]  # each with its status, or how it ended


def due_messages(news: Sequence[News], targets: Sequence[str]) -> Iterator[tuple[str, Lines]]:
    """What each target is to be sent. Of what began and is over within one message, only the end is in it."""
    for target in targets:
        mine = [each for each in news if target in each.targets]
        over = {(each.rule, each.check, each.since_at) for each in mine if each.kind in ("ended", "left")}
        listed = [
            each
            for each in mine
            if each.kind in ("ended", "left") or (each.rule, each.check, each.since_at) not in over
        ]
        lines = {About(each.kind, each.check, format_second(each.since_at)): _outcome(each) for each in listed}
        if lines:
            yield target, lines


def _outcome(news: News) -> str:
    if news.kind == "ended":
        return "recovered" if news.status == "current" else "improved"
    return "" if news.kind == "left" else news.status


def lines_of(body: str) -> Lines:
    """What a message says. ValueError if it says something else."""
    kind = how = ""
    lines: dict[About, str] = {}
    for line in body.rpartition("\n\n")[0].splitlines():
        if (heading := _HEADING.fullmatch(line)) and heading[1] in _HEADINGS:
            kind, how = _HEADINGS[heading[1]]
        elif found := _LINE.fullmatch(line):
            service, chain_id, since, _ = found.groups()
            check = Check(service, None if chain_id is None else int(chain_id))
            lines[About(kind, check, since)] = how
        elif not _MORE.fullmatch(line):
            raise ValueError(line)
    return lines
