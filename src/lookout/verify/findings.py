"""What was found out about a clause, in one of three verdicts and in words."""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

Verdict = Literal["pass", "fail", "could not tell"]

# The worst first: one failure among many passes is a failure, and one doubt among them a doubt.
VERDICTS: Final[tuple[Verdict, ...]] = ("fail", "could not tell", "pass")

_MOST_TEXTS: Final = 3
_LONGEST_QUOTE: Final = 80
_LETTERS: Final = "MRSHAEV"  # the contract's order


class ClauseFinding(NamedTuple):
    clause: str
    verdict: Verdict
    what: str


def passed(clause: str, what: str) -> ClauseFinding:
    return ClauseFinding(clause, "pass", what)


def failed(clause: str, what: str) -> ClauseFinding:
    return ClauseFinding(clause, "fail", what)


def inconclusive(clause: str, what: str) -> ClauseFinding:
    return ClauseFinding(clause, "could not tell", what)


def merge_findings(findings: Iterable[ClauseFinding]) -> list[ClauseFinding]:
    """One finding a clause, in the contract's order: the worst verdict, with the first of its texts."""
    texts: dict[str, dict[Verdict, dict[str, None]]] = {}
    for clause, verdict, what in findings:
        texts.setdefault(clause, {}).setdefault(verdict, {})[what] = None
    return [_pick_worst(clause, texts[clause]) for clause in sorted(texts, key=_sort_key)]


def quote(found: object) -> str:
    """What a stranger sent, safe to show: short, in ASCII, without control characters."""
    text = ascii(found)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."


def _pick_worst(clause: str, texts: dict[Verdict, dict[str, None]]) -> ClauseFinding:
    verdict = next(verdict for verdict in VERDICTS if verdict in texts)
    first, more = list(texts[verdict])[:_MOST_TEXTS], len(texts[verdict]) - _MOST_TEXTS
    return ClauseFinding(clause, verdict, "; ".join(first) + (f"; and {more} more" if more > 0 else ""))


def _sort_key(clause: str) -> tuple[int, int]:
    return _LETTERS.index(clause[0]), int(clause[1:])
