"""Clause H2, as far as it is about both documents: the history has the rows of the live report, in the same order."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from lookout.verify.documents import RowIdentity, list_identities, read_document, read_instant
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote


class DocumentRows(NamedTuple):
    """The rows of a document, and the instant it was made, if that can be read."""

    identities: tuple[RowIdentity, ...]
    at: int | None


def read_rows(bodies: Iterable[bytes], key: Literal["checks", "rows"]) -> list[DocumentRows]:
    """The rows of each different document that can be read; a row that is there twice is not looked at here."""
    found = []
    for body in dict.fromkeys(bodies):
        document = read_document(body, key, "H2")
        if not isinstance(document, ClauseFinding) and isinstance(document.get(key), list):
            once = tuple(dict.fromkeys(list_identities(document[key])))
            found.append(DocumentRows(once, read_instant(document.get("generatedAt"))))
    return found


def compare_rows(lives: list[DocumentRows], histories: list[DocumentRows]) -> ClauseFinding | None:
    """None if there is nothing to compare. A history and a live report of two moments may be of two configurations.
    But what was made between two documents with the same rows has those rows too."""
    if not lives or not histories:
        return None
    for live in lives:
        for history in histories:
            if live.identities != history.identities:
                if set(live.identities) == set(history.identities):
                    return failed("H2", "history: the rows are in another order than those of the live report")
                if _overlap(_find_times(live, lives), _find_times(history, histories)):
                    return failed("H2", _describe_difference(live, history))
    live, history = lives[-1], histories[-1]
    if live.identities == history.identities:
        return passed("H2", "rows and order are those of the live report")
    return inconclusive(
        "H2", f"{_describe_difference(live, history)}; they are of two moments, perhaps of two configurations"
    )


def _find_times(of: DocumentRows, documents: list[DocumentRows]) -> list[int]:
    """When documents had the same rows, as far as they were seen; nothing if this one may be of any time."""
    same = (each.at for each in documents if each.identities == of.identities)
    return [] if of.at is None else [at for at in same if at is not None]


def _overlap(one: list[int], other: list[int]) -> bool:
    return not one or not other or (min(one) <= max(other) and min(other) <= max(one))


def _describe_difference(live: DocumentRows, history: DocumentRows) -> str:
    lacking = [identity for identity in live.identities if identity not in history.identities]
    more = [identity for identity in history.identities if identity not in live.identities]
    text = f"history: without {quote(lacking[0])}" if lacking else f"history: with {quote(more[0])}"
    return f"{text}, other than the live report"
