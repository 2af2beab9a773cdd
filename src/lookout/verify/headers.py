"""What the answers of the API have in common: the names and the values of headers, and how they are compared."""

from typing import Final

from lookout.verify.client import HttpAnswer, NoAnswer
from lookout.verify.findings import ClauseFinding, failed, inconclusive
from lookout.verify.visit import EndpointVisit

METHODS: Final = "GET, HEAD, OPTIONS"
# Of the API itself: 404 and 429 are the gateway's.
API_CODES: Final = (200, 204, 304, 405, 503)
JSON: Final = "application/json; charset=utf-8"
ALLOW_ORIGIN: Final = "access-control-allow-origin"
EXPOSE: Final = "access-control-expose-headers"


def split_list(text: str | None) -> set[str]:
    return {part.strip().lower() for part in (text or "").split(",")}


def is_same_list(found: str | None, wanted: str) -> bool:
    """Whether two headers list the same, in any order."""
    return found is not None and split_list(found) == split_list(wanted)


def is_json(found: str | None) -> bool:
    return found is not None and found.lower().replace(" ", "") == JSON.replace(" ", "")


def maybe_from_cache(answer: HttpAnswer, cache: str | None) -> bool:
    """Whether a cache in front may have made this answer itself: the API's own would let every origin read it."""
    return cache is not None and answer.header(ALLOW_ORIGIN) is None


def report_missing(endpoint: EndpointVisit, clause: str, what: str, outcome: NoAnswer) -> ClauseFinding:
    """A request without an answer: inconclusive if it was not sent, and a failure if it was."""
    text = f"{endpoint.noun}: {what}: {outcome.why}"
    return failed(clause, text) if outcome.was_sent else inconclusive(clause, text)
