"""The rules of the gateway in front (clauses E), of documents that move on (M5, H14), and of the descriptions that an
operator may serve beside the endpoints (clauses V)."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

from lookout.verify.client import HttpAnswer, NoAnswer
from lookout.verify.documents import (
    Json,
    Remark,
    Unreadable,
    decode_document,
    failed,
    inconclusive,
    passed,
    quote,
    read_generated_at,
)
from lookout.verify.visit import LIMIT_PER_MINUTE, EndpointVisit, Limit, Visit

_OLDEST_S: Final = {"live report": 330, "history": 420}  # E3
# How long generatedAt may stand still, and how much longer in a shared cache (s-maxage, stale-while-revalidate).
_STILL_MS: Final = {"live report": (35_000, 60_000), "history": (75_000, 180_000)}
_WATCH_S: Final = {"live report": 40, "history": 80}
_STOPPED_S: Final = 150  # not even a row lives longer (R7)
_AHEAD_S: Final = 30  # what a reader puts up with (C2)
_RETRY_AFTER_S: Final = range(1, 91)
_PUBLICATIONS_A_SECOND: Final = 2
_NODES: Final = 10  # of a cache, each of which may have a copy of its own

_SCHEMAS: Final = {"/schemas/liveness.json": "checks", "/schemas/history.json": "rows"}
_OPENAPI: Final = "/openapi.json"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_CODES: Final = {"200", "204", "304", "405", "429", "503"}
_HEADERS: Final = {"etag", "cache-control", "access-control-allow-origin", "access-control-expose-headers"}
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems")


def verify_other_paths(visit: Visit) -> Iterator[Remark]:
    for name, request, outcome, _ in visit.elsewhere:
        if name not in ("other path", "slash"):
            continue
        if isinstance(outcome, NoAnswer):
            yield (failed if outcome.was_sent else inconclusive)(f"{request.path}: {outcome.why}")
        elif outcome.http_code == 429:
            yield inconclusive(f"{request.path} met the rate limit")
        elif outcome.http_code != 404:
            yield failed(f"{request.path} gets {outcome.http_code} instead of 404")
        else:
            body = decode_document(outcome.body)
            if isinstance(body, Unreadable) or not isinstance(body.get("message"), str):
                yield failed(f"{request.path}: a 404 without a message: {quote(outcome.body[:60])}")
            else:
                yield passed("another path gets 404 with a message")


def verify_rate_limit(visit: Visit) -> Iterator[Remark]:
    for endpoint in (visit.live, visit.history):
        for _, answer in endpoint.answers(429):
            yield from _verify_429(answer)
            yield inconclusive("this caller was refused before the limit was tried: others ask from here, or did")
    if visit.limit is None:
        yield inconclusive("not tried: it refuses the caller for a minute (--rate-limit tries it)")
    else:
        yield from _verify_limit(visit.limit)


def _verify_limit(limit: Limit) -> Iterator[Remark]:
    after = f"after {limit.made} requests in {limit.took_ms / 1000:.0f} s"
    if isinstance(limit.refused, NoAnswer):
        yield inconclusive(f"{after}: {limit.refused.why}")
    elif limit.refused.http_code != 429:
        slow = limit.took_ms > 60_000
        yield (inconclusive if slow else failed)(f"no 429 {after}")
    elif limit.made <= LIMIT_PER_MINUTE:
        yield from _verify_429(limit.refused)
        yield inconclusive(f"429 {after}, as right only if others ask from this address too")
    else:
        yield from _verify_429(limit.refused)
        yield passed(f"429 {after}")


def _verify_429(answer: HttpAnswer) -> Iterator[Remark]:
    """The page for a caller that asks too often. HEAD has none."""
    if _read_seconds(answer, "retry-after") not in _RETRY_AFTER_S:
        yield failed(f"a 429 with Retry-After {quote(answer.header('retry-after'))}")
    if not (answer.header("content-type") or "").startswith("text/plain"):
        yield failed(f"a 429 of Content-Type {quote(answer.header('content-type'))}")
    elif answer.body and b"1015" not in answer.body:
        yield failed("a 429 whose page does not name error code 1015")
    if answer.header("access-control-allow-origin") is not None:
        yield failed("a 429 with Access-Control-Allow-Origin")


def verify_copies(endpoint: EndpointVisit, cache: str | None) -> Iterator[Remark]:
    """How old the copies of a cache are."""
    if cache is None:
        return
    most_s = _OLDEST_S[endpoint.noun]
    for _, answer in endpoint.answers(200, 304):
        age_s = _read_seconds(answer, "age")
        if age_s is not None and age_s > most_s:
            yield failed(f"a copy {age_s} s old is served, and {most_s} s is the most")
    yield inconclusive(f"a cache ({cache}); what it does when the origin fails shows only when it does")


def _read_seconds(answer: HttpAnswer, header: str) -> int | None:
    text = answer.header(header) or ""
    return int(text) if text.isascii() and text.isdigit() else None


class _DatedAnswer(NamedTuple):
    """An answer: what for and when it was asked for, and its generatedAt."""

    name: str
    asked_at: int
    at: int


def _list_dated_answers(endpoint: EndpointVisit) -> Iterator[_DatedAnswer]:
    known: dict[bytes, int | None] = {}
    for exchange, body in endpoint.documents():
        if body not in known:
            known[body] = read_generated_at(body)
        at = known[body]
        if at is not None:
            yield _DatedAnswer(exchange.name, exchange.at, at)


def looks_stopped(visit: Visit) -> bool:
    """Whether the live report is older than any that a monitor keeps up to date, or not of this time at all."""
    first = next(_list_dated_answers(visit.live), None)
    return first is not None and not -_AHEAD_S <= (visit.at - first.at) / 1000 <= _STOPPED_S


def verify_movement(endpoint: EndpointVisit, now: int, cache: str | None) -> Iterator[Remark]:
    """Whether generatedAt moves on. Only --wait says that the monitor is meant to run."""
    seen = list(_list_dated_answers(endpoint))
    if not seen:
        return
    instants = {answer.at for answer in seen}
    took_s = (seen[-1].asked_at - seen[0].asked_at) / 1000
    ahead_s = _measure_ahead_s(endpoint, seen[0].at, now)
    watched = [answer for answer in seen if answer.name == "watch"]
    if len(instants) > 3 + (_NODES if cache else 0) + _PUBLICATIONS_A_SECOND * took_s:
        yield failed(f"{len(instants)} instants in {len(seen)} answers: generatedAt is that of serving")
    elif ahead_s > _AHEAD_S:
        yield failed(f"generatedAt is {ahead_s:.0f} s ahead of its server's clock, and of this one's")
    elif len(watched) > 1:
        yield _judge_watch(endpoint.noun, watched, cache)
    elif (age_s := (now - seen[0].at) / 1000) < -_AHEAD_S:
        yield inconclusive(f"generatedAt is {-age_s:.0f} s ahead of this machine's clock")
    else:
        stopped = ": the monitor seems to have stopped" if endpoint.is_live and age_s > _STOPPED_S else ""
        watches = f"whether it moves, --wait {_WATCH_S[endpoint.noun]} watches"
        yield inconclusive(f"generatedAt was {max(0, age_s):.0f} s old{stopped}; {watches}")


def _judge_watch(noun: str, watched: list[_DatedAnswer], cache: str | None) -> Remark:
    watched_ms, moved_ms = watched[-1].asked_at - watched[0].asked_at, watched[-1].at - watched[0].at
    still_ms, cached_ms = _STILL_MS[noun]
    text = f"generatedAt moved by {moved_ms / 1000:.0f} s in {watched_ms / 1000:.0f} s"
    if watched_ms - moved_ms > still_ms + (cached_ms if cache else 0):
        return failed(f"{text}: the monitor has stopped, or publishes too rarely")
    return passed(f"{noun}: {text}") if moved_ms > 0 else inconclusive(f"{text}, which is too short to tell")


def _measure_ahead_s(endpoint: EndpointVisit, at: int, now: int) -> float:
    """How far an instant is ahead, by the clock that has it nearer: this machine's, or that of the server's Date."""
    date = next((answer.header("date") for _, answer in endpoint.answers(200)), None)
    try:
        server_at = parsedate_to_datetime(date or "").timestamp() * 1000
    except (ValueError, OverflowError):
        return 0
    return (at - max(now, server_at)) / 1000


def _read_descriptions(visit: Visit) -> Iterator[tuple[str, Json | Remark]]:
    """The descriptions by name, or what is to be said of each that cannot be read."""
    for name, _, outcome, _ in visit.elsewhere:
        if name not in (*_SCHEMAS, _OPENAPI):
            continue
        if not isinstance(outcome, HttpAnswer) or outcome.http_code != 200:
            seen = outcome.http_code if isinstance(outcome, HttpAnswer) else outcome.why
            yield name, inconclusive(f"{name} is not served here ({seen}); it is a convenience")
        elif outcome.problem or outcome.header("content-encoding"):
            problem = outcome.problem or "it is compressed"
            yield name, inconclusive(f"{name} is served, but not as it is: {problem}")
        else:
            document = decode_document(outcome.body)
            yield name, failed(f"{name}: {document.why}") if isinstance(document, Unreadable) else document


def verify_descriptions(visit: Visit) -> Iterator[Remark]:
    for _, description in _read_descriptions(visit):
        served = passed(f"{', '.join((*_SCHEMAS, _OPENAPI))} are served")
        yield description if isinstance(description, Remark) else served


def verify_schemas(visit: Visit) -> Iterator[Remark]:
    descriptions = dict(_read_descriptions(visit))
    for name, rows in _SCHEMAS.items():
        schema = descriptions.get(name)
        closing = None if schema is None or isinstance(schema, Remark) else _find_closing_key(schema)
        if schema is None or isinstance(schema, Remark):
            yield inconclusive(f"{name} is not there to be read")
        elif schema.get("$schema") != _DRAFT:
            yield failed(f"{name}: $schema is {quote(schema.get('$schema'))}")
        elif not any(rows in node for node in _walk_objects(schema)):
            yield failed(f"{name}: it does not describe {rows}")
        elif closing is not None:
            yield failed(f"{name}: {closing} refuses what it does not know")
        else:
            yield passed("both are schemas of 2020-12, and none refuses what it does not know")


def _walk_objects(found: Any) -> Iterator[Json]:
    """All objects in a JSON value, however deep they are."""
    waiting = [found]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)


def _find_closing_key(schema: Json) -> str | None:
    """What keeps a schema from being permissive."""
    for node in _walk_objects(schema):
        for key, value in node.items():
            if key in _CLOSING and value is False:
                return key
            if key == "enum" and isinstance(value, list) and any(isinstance(each, str) for each in value):
                return key
    return None


def verify_openapi(visit: Visit) -> Iterator[Remark]:
    description = dict(_read_descriptions(visit)).get(_OPENAPI)
    if description is None or isinstance(description, Remark):
        yield inconclusive(f"{_OPENAPI} is not there to be read")
        return
    version, paths = str(description.get("openapi")), description.get("paths")
    if not version.startswith("3.1"):
        yield failed(f"{_OPENAPI}: openapi is {quote(version)}, and not 3.1")
    for endpoint in (visit.live, visit.history):
        found = [
            item
            for path, item in (paths.items() if isinstance(paths, dict) else ())
            if endpoint.path.endswith(path) and path.endswith(endpoint.path.rpartition("/")[2])
        ]
        responses = _merge_responses(description, found[0]) if found else {}
        missing = sorted(_CODES - set(responses))
        headers = _resolve(description, responses.get("200")).get("headers")
        lacking = sorted(_HEADERS - {str(name).lower() for name in (headers if isinstance(headers, dict) else ())})
        if not found:
            yield failed(f"{_OPENAPI}: {endpoint.path} is not described")
        elif missing:
            yield failed(f"{_OPENAPI}: {endpoint.path} without {', '.join(missing)}")
        elif lacking:
            yield failed(f"{_OPENAPI}: {endpoint.path}: 200 without {', '.join(lacking)}")
        else:
            yield passed("an OpenAPI 3.1 description has both endpoints with their codes and headers")


def _merge_responses(description: Json, item: object) -> Json:
    """The responses of all methods of a path, by code; those of GET win."""
    found: Json = {}
    for method in ("options", "head", "get"):
        responses = _resolve(description, _resolve(description, item).get(method)).get("responses")
        found.update(responses if isinstance(responses, dict) else {})
    return found


def _resolve(description: Json, part: object) -> Json:
    """An object, or the one in the same description that it refers to."""
    if not isinstance(part, dict):
        return {}
    reference = part.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return part
    found: Any = description
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
