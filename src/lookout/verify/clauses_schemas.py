"""Clauses V: the descriptions that an operator may serve beside the endpoints."""

from collections.abc import Iterator
from typing import Any, Final

from lookout.verify.client import HttpAnswer
from lookout.verify.documents import Json, Unreadable, decode_document
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout.verify.visit import Visit

_SCHEMAS: Final = {"/schemas/liveness.json": "checks", "/schemas/history.json": "rows"}
_OPENAPI: Final = "/openapi.json"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_CODES: Final = {"200", "204", "304", "405", "429", "503"}
_HEADERS: Final = {"etag", "cache-control", "access-control-allow-origin", "access-control-expose-headers"}
_CLOSING: Final = ("additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems")


def verify_schemas(visit: Visit) -> Iterator[ClauseFinding]:
    served = {}
    for name, _, outcome, _ in visit.elsewhere:
        if name not in (*_SCHEMAS, _OPENAPI):
            continue
        if not isinstance(outcome, HttpAnswer) or outcome.http_code != 200:
            seen = outcome.http_code if isinstance(outcome, HttpAnswer) else outcome.why
            yield inconclusive("V3", f"{name} is not served here ({seen}); it is a convenience")
            continue
        if outcome.problem or outcome.header("content-encoding"):
            yield inconclusive("V3", f"{name} is served, but not as it is: {outcome.problem or 'it is compressed'}")
            continue
        document = decode_document(outcome.body)
        if isinstance(document, Unreadable):
            yield failed("V3", f"{name}: {document.why}")
        else:
            yield passed("V3", f"{', '.join((*_SCHEMAS, _OPENAPI))} are served")
            served[name] = document
    for name, rows in _SCHEMAS.items():
        if name in served:
            yield from _verify_schema(name, served[name], rows)
        else:
            yield inconclusive("V1", f"{name} is not there to be read")
    if _OPENAPI in served:
        yield from _verify_openapi(served[_OPENAPI], visit)
    else:
        yield inconclusive("V2", f"{_OPENAPI} is not there to be read")


def _verify_schema(name: str, schema: Json, rows: str) -> Iterator[ClauseFinding]:
    if schema.get("$schema") != _DRAFT:
        yield failed("V1", f"{name}: $schema is {quote(schema.get('$schema'))}")
    elif not any(rows in node for node in _walk_objects(schema)):
        yield failed("V1", f"{name}: it does not describe {rows}")
    else:
        closed = _find_closing_key(schema)
        if closed is None:
            yield passed("V1", "both are schemas of 2020-12, and none refuses what it does not know")
        else:
            yield failed("V1", f"{name}: {closed} refuses what it does not know")


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


def _verify_openapi(description: Json, visit: Visit) -> Iterator[ClauseFinding]:
    version = str(description.get("openapi"))
    if not version.startswith("3.1"):
        yield failed("V2", f"{_OPENAPI}: openapi is {quote(version)}, and not 3.1")
    paths = description.get("paths")
    for endpoint in (visit.live, visit.history):
        found = [
            item
            for path, item in (paths.items() if isinstance(paths, dict) else ())
            if endpoint.path.endswith(path) and path.endswith(endpoint.path.rpartition("/")[2])
        ]
        if not found:
            yield failed("V2", f"{_OPENAPI}: {endpoint.path} is not described")
            continue
        responses = _merge_responses(description, found[0])
        missing = sorted(_CODES - set(responses))
        headers = _resolve(description, responses.get("200")).get("headers")
        lacking = sorted(_HEADERS - {str(name).lower() for name in (headers if isinstance(headers, dict) else ())})
        if missing:
            yield failed("V2", f"{_OPENAPI}: {endpoint.path} without {', '.join(missing)}")
        elif lacking:
            yield failed("V2", f"{_OPENAPI}: {endpoint.path}: 200 without {', '.join(lacking)}")
        else:
            yield passed("V2", "an OpenAPI 3.1 description has both endpoints with their codes and headers")


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
