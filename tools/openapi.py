"""The OpenAPI description, made from the replies themselves so that it cannot say anything else (V2)."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from lookout.documents.api import ALLOWED_METHODS, paths
from lookout.documents.reports import SCHEMA_VERSION, build_schemas
from lookout.public import about
from lookout.public.about import Description
from lookout.public.atom import feed_path
from lookout.public.badges import Shield
from lookout.public.feeds import BADGE, FEED, JSON, STATUS, SUMMARY
from lookout.public.page.assets import EMBED_PATH
from lookout.public.summary import StatusReport, Summary
from lookout.server.replies import (
    HISTORY_CACHING,
    LIVE_CACHING,
    NO_HISTORY,
    NO_HOST,
    NO_LIVE,
    NOT_ALLOWED,
    NOT_FOUND,
    OWN_CACHING,
    Form,
    Reply,
    Resource,
    convenience_resource,
    endpoint,
    too_many_requests,
)
from lookout.server.site import PAGE_CACHING, build_embed_route, make_timed_replies
from tools.examples import build_about_example, build_feeds_example, build_history_example, build_live_example

Json = dict[str, Any]

_ABOUT: Final = (
    "What one monitor sees of the services that a wallet depends on: a live report, and a history of it."
    " In beta: both may change without notice. There is no authentication, and a query string changes nothing."
    " The routes tagged `convenience` are the operator's own and no part of the public API."
    " Servers and proxies on the way add headers of their own, such as Date."
    " A generated client has to take both documents row by row, and allow keys and values that are not described here:"
    " a strict model of the whole loses every row for one that is odd. Keep `checks` and `rows` as JSON in it, and"
    " validate each row on its own."
)
_LIVE_MISSING: Final = "This server has not loaded its first report yet. Ask again, less and less often."
_HISTORY_MISSING: Final = "No history was written yet, or it could not be read for more than five minutes."
_OTHER_PATH: Final = "Any path that is not listed here, and a row that is not there; from the gateway."
_BAD_REQUEST: Final = "The request is not valid HTTP/1.1, or Host is missing, there twice, or the name of no host."
_OTHER_METHOD: Final = f"Any method but {ALLOWED_METHODS}."
_NOUNS: Final = {"liveness": "the live report", "history": "the history"}
_TAGS: Final = {
    "api": "The public API: two documents to read.",
    "convenience": "The operator's own routes, which may change or disappear at any time.",
}
# By the name of the header; those that are missing here explain themselves.
_MEANINGS: Final = {
    "etag": "A validator of the body as it was sent, to be sent back in If-None-Match; a cache may make it weak.",
    "vary": "The body may be another one, with an ETag of its own, for another Accept-Encoding.",
    "x-lookout-etags": "The ETags of all forms, the plain one first: for a cache in front, which does not pass it on.",
    "retry-after": "For how many seconds not to ask again.",
    "cache-control": "For how long browsers (max-age) and shared caches (s-maxage) may use the answer.",
    "access-control-allow-origin": "Scripts of every origin may read the answer; credentials play no part.",
    "content-length": "The length of the body in bytes, also where a HEAD request is not sent it.",
}
# Headers whose text is not always the same.
_VARYING: Final[Mapping[str, Json]] = {
    "etag": {"type": "string", "pattern": '^(W/)?"[^"]{16}"$'},
    "x-lookout-etags": {"type": "string", "pattern": '^"[^"]{16}"(, "[^"]{16}")*$'},
    "content-length": {"type": "integer", "minimum": 0},
}
_PASSING: Final[Mapping[str, Json]] = {
    **_VARYING,
    "cache-control": {"type": "string", "pattern": "^public, max-age=[0-9]+, must-revalidate$"},
}
_SECONDS: Final[Json] = {"type": "integer", "minimum": 1}
_TOO_MANY: Final = too_many_requests(60)
# What a cache in front does not pass on.
_FOR_CACHES: Final = ("x-lookout-etags",)
# Names that are not written with one capital at the start of each word.
_WRITTEN: Final = {"etag": "ETag", "x-lookout-etags": "X-Lookout-ETags"}
_CONTENT_ENCODING: Final[Json] = {
    "description": "Not there if the body is plain.",
    "required": False,
    "schema": {"type": "string", "const": "gzip"},
}
_ACCEPT_ENCODING: Final[Json] = {
    "name": "Accept-Encoding",
    "in": "header",
    "description": "The content codings that the client understands. Without gzip among them the body is plain.",
    "schema": {"type": "string"},
    "examples": {"gzip": {"value": "gzip"}, "plain": {"value": "identity"}},
}
_IF_NONE_MATCH: Final[Json] = {
    "name": "If-None-Match",
    "in": "header",
    "description": "The ETag of the copy that the client has; a list of them; or `*`. Weakly compared.",
    "schema": {"type": "string"},
    "examples": {
        "a copy": {"value": build_live_example().etag},
        "some copies": {"value": f"W/{build_live_example().etag}, {build_history_example().etag}"},
        "any copy": {"value": "*"},
    },
}
_TEXT: Final[Json] = {"schema": {"type": "string"}}
_SERVICE: Final[Json] = {
    "name": "service",
    "in": "path",
    "required": True,
    "description": "A service of the live report.",
    "schema": {"type": "string", "minLength": 1},
    "example": "indexer",
}
_CHAIN: Final[Json] = {
    "name": "chainId",
    "in": "path",
    "required": True,
    "description": "A chain of the live report.",
    "schema": {"type": "integer", "minimum": 1},
    "example": 1,
}
_BADGES: Final = {
    BADGE: ("badge", "how the services are outside test networks", ()),
    f"{BADGE}/{{service}}": ("service-badge", "how a service is outside test networks", (_SERVICE,)),
    f"{BADGE}/{{service}}/{{chainId}}": ("row-badge", "how a row is", (_SERVICE, _CHAIN)),
}


class _Route(NamedTuple):
    """How a path is called, and which of its headers do not always have the same text."""

    name: str
    noun: str
    tag: str = "convenience"
    varying: Mapping[str, Json] = _VARYING


def describe_api(protocol: str) -> Json:
    """OpenAPI 3.1 of both endpoints at their paths, and of the operator's routes that help with them."""
    described = _describe_api(protocol)
    _add_formats(described)
    return described


def _add_formats(described: Any) -> None:
    """Numbers are whole up to 2^53: a client whose integers have 32 bits would not hold them."""
    if isinstance(described, list):
        for part in described:
            _add_formats(part)
    elif isinstance(described, dict):
        if described.get("type") == "integer":
            described["format"] = "int64"
        for key, part in described.items():
            if key not in ("example", "examples"):
                _add_formats(part)


def _describe_api(protocol: str) -> Json:
    live, history = endpoint(build_live_example(), LIVE_CACHING), endpoint(build_history_example(), HISTORY_CACHING)
    live_path, history_path = paths(protocol)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Liveness reporting", "version": f"{SCHEMA_VERSION}-beta", "description": _ABOUT},
        "servers": [{"url": "/", "description": "The server that this description comes from."}],
        "tags": [{"name": name, "description": text} for name, text in _TAGS.items()],
        "security": [],
        "paths": {
            live_path: _api_path("liveness", live, NO_LIVE, _LIVE_MISSING),
            history_path: _api_path("history", history, NO_HISTORY, _HISTORY_MISSING),
            **{
                f"/schemas/{name}.json": _own_path(f"{name}-schema", f"the schema of {_NOUNS[name]}")
                for name in build_schemas()
            },
            "/openapi.json": _own_path("openapi", "this description"),
            about.PATH: _own_path(
                "about",
                "what the operator says of the deployment",
                _ref("schemas", "Description"),
                PAGE_CACHING,
                msgspec.json.encode(build_about_example()),
            ),
            EMBED_PATH: _embed_path(),
            **_feed_paths(),
        },
        "components": {
            "parameters": {"IfNoneMatch": _IF_NONE_MATCH, "AcceptEncoding": _ACCEPT_ENCODING},
            "responses": {
                "BadRequest": _response(_BAD_REQUEST, NO_HOST, _json_of(NO_HOST, _ref("schemas", "Error"))),
                "BadRequestNoBody": _response(_BAD_REQUEST, NO_HOST),
                "NotFound": _response(_OTHER_PATH, NOT_FOUND, _json_of(NOT_FOUND, _object_of("message"))),
                "NotFoundNoBody": _response(_OTHER_PATH, NOT_FOUND),
                "NotAllowed": _response(_OTHER_METHOD, NOT_ALLOWED, _json_of(NOT_ALLOWED, _ref("schemas", "Error"))),
                "TooManyRequests": _too_many({"schema": {"type": "string"}, "example": _TOO_MANY.body.decode()}),
                "TooManyRequestsNoBody": _too_many({}),
            },
            "schemas": {**_document_schemas(), **_feed_schemas(), "Error": _object_of("error")},
        },
    }


def _api_path(name: str, found: Resource, missing: Resource, why_missing: str) -> Json:
    """One endpoint: its replies with a document, and the one without."""
    schema = _ref("schemas", build_schemas()[name]["$ref"].rpartition("/")[2])
    path = _path(_Route(name, _NOUNS[name], "api"), found, _json_of(found.plain.found, schema))
    return _or_missing(path, missing, why_missing)


def _or_missing(path: Json, missing: Resource, why_missing: str) -> Json:
    reply = missing.plain.found
    path["get"]["responses"]["503"] = _response(why_missing, reply, _json_of(reply, _ref("schemas", "Error")))
    path["head"]["responses"]["503"] = _response(why_missing, reply)
    return path


def _own_path(
    name: str, noun: str, schema: Json | None = None, caching: str = OWN_CACHING, example: bytes = b"{}"
) -> Json:
    resource = convenience_resource(JSON, example, caching=caching)
    body = _json_of(resource.plain.found, schema or {"type": "object"})
    return _convenience(_path(_Route(name, noun), resource, body))


def _embed_path() -> Json:
    script = build_embed_route(b"0;")[EMBED_PATH]
    return _convenience(_path(_Route("embed", "a badge for other sites, as a script"), script, _TEXT))


def _convenience(path: Json) -> Json:
    return {"description": "A convenience of the operator, no part of the public API.", **path}


def _feed_paths() -> Json:
    """What is made of both documents, as it is made of the examples."""
    table = make_timed_replies(build_feeds_example()).ready
    documents = {
        FEED: ("feed", "the incidents, as an Atom feed", _TEXT),
        SUMMARY: ("summary", "the summary", _ref_body("Summary")),
        STATUS: ("status", "the status", _ref_body("StatusReport")),
    }
    found = {}
    for at, (name, noun, body) in documents.items():
        path = _path(_Route(name, noun, varying=_PASSING), table[at], _with_example(table[at], body))
        found[at] = _convenience(_or_missing(path, NO_LIVE, _LIVE_MISSING))
    one_chain = "the incidents of a chain, as an Atom feed"
    path = _path(_Route("chain-feed", one_chain, varying=_PASSING), table[FEED], _with_example(table[FEED], _TEXT))
    found[feed_path("{chainId}")] = _convenience(_or_not_found(path, (_CHAIN,)))
    for at, (name, noun, parameters) in _BADGES.items():
        for ending, kind, body in ((".svg", "a picture", _TEXT), (".json", "JSON for shields.io", _ref_body("Shield"))):
            route = _Route(f"{name}-{ending[1:]}", f"{noun}, as {kind}", varying=_PASSING)
            made = table[f"{BADGE}{ending}"]
            path = _path(route, made, _with_example(made, body))
            found[f"{at}{ending}"] = _convenience(_or_not_found(path, parameters) if parameters else path)
    return found


def _or_not_found(path: Json, parameters: tuple[Json, ...]) -> Json:
    """There may be no such row or chain."""
    path["head"]["responses"]["404"] = _ref("responses", "NotFoundNoBody")
    path["options"]["responses"]["404"] = _ref("responses", "NotFound")
    return {**path, "parameters": list(parameters)}


def _with_example(resource: Resource, body: Json) -> Json:
    found = resource.plain.found
    return {**body, "example": found.body.decode()} if body is _TEXT else _json_of(found, body["schema"])


def _path(route: _Route, resource: Resource, body: Json) -> Json:
    """What every path answers. 404 and 405 stand with GET, since no operation of the path leads to them."""
    name, noun, tag, varying = route
    found, not_modified = f"{noun.capitalize()}, always whole.", "The client's copy is still the newest one."
    plain = resource.plain
    if plain.not_modified is None:
        raise ValueError(f"{name}: a resource that can be found can also be unchanged")
    parameters = [_ref("parameters", "IfNoneMatch"), _ref("parameters", "AcceptEncoding")]
    return {
        "get": {
            "operationId": f"get-{name}",
            "summary": f"Read {noun}",
            "tags": [tag],
            "parameters": parameters,
            "responses": {
                "200": _found(found, plain, body, varying),
                "304": _response(not_modified, plain.not_modified, None, varying),
                "400": _ref("responses", "BadRequest"),
                "404": _ref("responses", "NotFound"),
                "405": _ref("responses", "NotAllowed"),
                "429": _ref("responses", "TooManyRequests"),
            },
        },
        "head": {
            "operationId": f"head-{name}",
            "summary": f"The headers of {noun}",
            "tags": [tag],
            "parameters": parameters,
            "responses": {
                "200": _found("The headers that GET would get.", plain, None, varying),
                "304": _response(not_modified, plain.not_modified, None, varying),
                "400": _ref("responses", "BadRequestNoBody"),
                "429": _ref("responses", "TooManyRequestsNoBody"),
            },
        },
        "options": {
            "operationId": f"options-{name}",
            "summary": "What scripts of other origins may do",
            "tags": [tag],
            "responses": {
                "204": _response("The answer to a preflight request.", resource.preflight),
                "400": _ref("responses", "BadRequest"),
                "429": _ref("responses", "TooManyRequests"),
            },
        },
    }


def _found(text: str, plain: Form, body: Json | None, varying: Mapping[str, Json]) -> Json:
    """The document in whichever form: the headers of both are the same but for the coding."""
    response = _response(text, plain.found, body, varying)
    return {**response, "headers": {"Content-Encoding": _CONTENT_ENCODING, **response["headers"]}}


def _response(text: str, reply: Reply, body: Json | None = None, varying: Mapping[str, Json] = _VARYING) -> Json:
    """A reply, described by itself; ``body`` says what is in it, if it is sent."""
    headers = dict(reply.headers)
    media_type = headers.pop("content-type", None)
    described = {_WRITTEN.get(name, name.title()): _header(name, value, varying) for name, value in headers.items()}
    content = {} if media_type is None else {"content": {media_type: body or {}}}
    return {"description": text, "headers": described, **content}


def _json_of(reply: Reply, schema: Json) -> Json:
    return {"schema": schema, "example": msgspec.json.decode(reply.body)}


def _header(name: str, value: str, varying: Mapping[str, Json]) -> Json:
    schema = varying.get(name, {"type": "string", "const": value})
    meaning = {"description": _MEANINGS[name]} if name in _MEANINGS else {}
    return {**meaning, "required": name not in _FOR_CACHES, "schema": schema}


def _too_many(body: Json) -> Json:
    """The seconds in its page and its header are what is left of them."""
    text = "Too many requests from one address. It comes from the edge, and scripts of other origins cannot read it."
    return _response(text, _TOO_MANY, body, {**_VARYING, "retry-after": _SECONDS})


def _object_of(text: str) -> Json:
    return {"type": "object", "properties": {text: {"type": "string"}}, "required": [text]}


def _ref(kind: str, name: str) -> Json:
    return {"$ref": f"#/components/{kind}/{name}"}


def _ref_body(name: str) -> Json:
    return {"schema": _ref("schemas", name)}


def _feed_schemas() -> Json:
    of = (Summary, StatusReport, Shield, Description)
    _, parts = msgspec.json.schema_components(of, ref_template="#/components/schemas/{name}")
    return parts


def _document_schemas() -> Json:
    """The parts of both schemas by name, referring to each other where they are now."""
    parts = msgspec.json.encode([schema["$defs"] for schema in build_schemas().values()])
    live, history = msgspec.json.decode(parts.replace(b'"#/$defs/', b'"#/components/schemas/'), type=list[Json])
    return {**live, **history}
