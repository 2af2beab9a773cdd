"""The OpenAPI description, held against every reply that the code can make."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from jsonschema import Draft202012Validator, ValidationError
from openapi_spec_validator import OpenAPIV31SpecValidator

from lookout.config.tables import HistoryTable
from lookout.core.history import uptime
from lookout.documents.api import paths
from lookout.documents.document import with_compressed
from lookout.documents.reports import build_schemas
from lookout.public.feeds import make_feed_files
from lookout.public.page.assets import encode_badge
from lookout.server.replies import (
    HISTORY_CACHING,
    LIVE_CACHING,
    NO_HISTORY,
    NO_HOST,
    NO_LIVE,
    Reply,
    endpoint,
    respond,
    too_many_requests,
)
from lookout.server.site import ReplyTable, build_description_routes, build_embed_route, make_timed_replies
from tests.descriptions import a_description
from tools.examples import build_feeds_example, build_history_example, build_live_example
from tools.openapi import describe_api

DOCS: Final = Path(__file__).parent.parent.parent / "docs"
LIVE, HISTORY = paths("protocol")
OWN: Final = build_description_routes("protocol", a_description()) | build_embed_route(encode_badge(a_description()))
FEEDS: Final = make_timed_replies(build_feeds_example())
STORED: Final = with_compressed({"live": build_live_example(), "history": build_history_example()})
LOADED: Final = ReplyTable(
    {
        **OWN,
        **FEEDS.ready,
        LIVE: endpoint(STORED["live"], LIVE_CACHING, STORED["live.gzip"]),
        HISTORY: endpoint(STORED["history"], HISTORY_CACHING, STORED["history.gzip"]),
    },
    FEEDS.later,
)
EMPTY: Final = {
    **OWN,
    **make_timed_replies(make_feed_files(build_feeds_example().names, None, None, 0, 0)).ready,
    LIVE: NO_LIVE,
    HISTORY: NO_HISTORY,
}
ON_DEMAND: Final = ("/badge/indexer/1.svg", "/badge/indexer/1.json", "/feed/1.atom")
METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY", "get")
DESCRIBED_METHODS: Final = ("get", "head", "options")
DESCRIPTION: Final = describe_api("protocol")


def described_path(path: str) -> str:
    """The path that describes this one."""
    if path.startswith("/feed/"):
        return "/feed/{chainId}.atom"
    if not path.startswith("/badge/"):
        return path
    stem, _, ending = path.rpartition(".")
    return f"/badge/{{service}}{'/{chainId}' if stem.count('/') > 2 else ''}.{ending}"


class Exchange(NamedTuple):
    """A request and its reply, with the place in the description that speaks about it: a path and a method."""

    path: str
    method: str
    described_at: str
    reply: Reply


def exchanges() -> Iterator[Exchange]:
    for resources in (LOADED, EMPTY):
        for path, resource in [
            *resources.items(),
            *((path, LOADED[path]) for path in ON_DEMAND if resources is LOADED),
        ]:
            for method in METHODS:
                described_at = method.lower() if method in ("GET", "HEAD", "OPTIONS") else "get"
                for if_none_match in (None, "*", '"another"', resource.plain.etag or '"none"'):
                    for prefers_gzip in (False, True):
                        reply = respond(resources, method, path, if_none_match, prefers_gzip=prefers_gzip)
                        yield Exchange(described_path(path), method, described_at, reply)
    for path in {*map(described_path, LOADED)}:
        for described_at in DESCRIBED_METHODS:
            yield Exchange(path, described_at.upper(), described_at, NO_HOST)
            for seconds in (1, 60):
                yield Exchange(path, described_at.upper(), described_at, too_many_requests(seconds))
    for path in LOADED:
        yield Exchange(described_path(path), "GET", "get", respond(LOADED, "GET", f"{path}/", None))
    badges = ("/badge/nothing.svg", "/badge/nothing.json", "/badge/nothing/1.svg", "/badge/nothing/1.json")
    for path in (*badges, "/feed/7.atom"):
        for method in DESCRIBED_METHODS:
            yield Exchange(described_path(path), method.upper(), method, respond(LOADED, method.upper(), path, None))


EXCHANGES: Final = list(exchanges())


def resolved(value: Any) -> Any:
    """What a reference refers to, or the value itself."""
    if "$ref" not in value:
        return value
    found: Any = DESCRIPTION
    for step in value["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return found


def conforms(value: Any, schema: dict[str, Any]) -> None:
    Draft202012Validator({**schema, "components": DESCRIPTION["components"]}).validate(value)


def as_described(text: str, schema: dict[str, Any]) -> str | int:
    return int(text) if schema["type"] == "integer" else text


@pytest.mark.clause("V2")
def test_the_description_is_openapi_3_1() -> None:
    assert DESCRIPTION["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(DESCRIPTION).validate()


@pytest.mark.clause("V2")
def test_every_reply_is_described_to_the_letter_of_its_headers() -> None:
    for path, method, described_at, reply in EXCHANGES:
        response = resolved(DESCRIPTION["paths"][path][described_at]["responses"][str(reply.http_code)])
        headers = dict(reply.headers)
        media_type = headers.pop("content-type", None)
        assert list(response.get("content", {})) == ([] if media_type is None else [media_type])
        described = {name.lower(): header for name, header in response["headers"].items()}
        optional = {"content-encoding"} - headers.keys()
        assert [name for name in described if name not in optional] == list(headers), (path, method, reply.http_code)
        for name, text in headers.items():
            assert described[name]["required"] or name in ("content-encoding", "x-lookout-etags")
            conforms(as_described(text, described[name]["schema"]), described[name]["schema"])
        if media_type is not None:
            body_conforms(method, reply, media_type, response["content"][media_type])


def body_conforms(method: str, reply: Reply, media_type: str, content: dict[str, Any]) -> None:
    body = gzip.decompress(reply.body) if "content-encoding" in dict(reply.headers) else reply.body
    if method == "HEAD":
        assert content == {}
    elif media_type.startswith("application/json"):
        conforms(json.loads(body), content["schema"])
    else:
        conforms(body.decode(), content["schema"])


@pytest.mark.clause("V2")
def test_a_header_is_described_with_its_text_unless_it_is_of_a_document_or_of_a_moment() -> None:
    varying = set()
    for path in (LIVE, HISTORY):
        for method in DESCRIBED_METHODS:
            for code, response in DESCRIPTION["paths"][path][method]["responses"].items():
                for name, header in resolved(response)["headers"].items():
                    if "const" not in header["schema"]:
                        varying.add((name, code if name == "Retry-After" else ""))
    assert varying == {("ETag", ""), ("X-Lookout-ETags", ""), ("Content-Length", ""), ("Retry-After", "429")}


@pytest.mark.clause("V2")
def test_an_etag_that_a_cache_on_the_way_made_weak_is_described_too() -> None:
    schema = DESCRIPTION["paths"][LIVE]["get"]["responses"]["200"]["headers"]["ETag"]["schema"]
    for text in (build_live_example().etag, f"W/{build_live_example().etag}"):
        conforms(text, schema)
    with pytest.raises(ValidationError):
        conforms(f"w/{build_live_example().etag}", schema)


@pytest.mark.clause("V2")
def test_nothing_is_described_that_the_code_does_not_do() -> None:
    described = {
        (path, method, code)
        for path, operations in DESCRIPTION["paths"].items()
        for method in DESCRIBED_METHODS
        for code in operations[method]["responses"]
    }
    assert described == {(path, at, str(reply.http_code)) for path, _, at, reply in EXCHANGES}
    assert {method for operations in DESCRIPTION["paths"].values() for method in operations} == {
        "description",
        "parameters",
        *DESCRIBED_METHODS,
    }


@pytest.mark.clause("V2")
def test_examples_are_what_their_schemas_and_the_rules_of_uptime_allow() -> None:
    for path in (LIVE, HISTORY):
        (content,) = DESCRIPTION["paths"][path]["get"]["responses"]["200"]["content"].values()
        conforms(content["example"], content["schema"])
        conforms(content["example"], build_schemas()["history" if path == HISTORY else "liveness"])
    for row in json.loads(build_history_example().body)["rows"]:
        known = sum(character in "ckdu" for character in row["buckets"])
        share = uptime(row["buckets"].count("c"), known, HistoryTable().min_known_buckets)
        assert (len(row["buckets"]), row["uptime"]) == (25, dict.fromkeys(("24h", "7d", "14d"), share))


def test_the_description_is_served_for_the_protocol_and_names_no_machine() -> None:
    served = build_description_routes("another-protocol", a_description())["/openapi.json"].plain.found.body
    other = describe_api("another-protocol")
    assert served == msgspec.json.encode(other), "run: make schemas"
    assert list(other["paths"])[:2] == list(paths("another-protocol"))
    assert [server["url"] for server in other["servers"]] == ["/"]
    assert not any(name in json.dumps(other) for name in ("127.0.0.1", "localhost", "0.0.0.0"))  # noqa: S104


@pytest.mark.clause("V3")
@pytest.mark.parametrize(
    ("path", "file"),
    [
        ("/schemas/liveness.json", "schemas/liveness.json"),
        ("/schemas/history.json", "schemas/history.json"),
        ("/openapi.json", "openapi.json"),
    ],
)
def test_the_descriptions_are_served_as_they_are_published_and_as_conveniences(path: str, file: str) -> None:
    reply = respond(LOADED, "GET", path, None)
    assert (reply.http_code, dict(reply.headers)["content-type"]) == (200, "application/json; charset=utf-8")
    assert json.loads(reply.body) == json.loads((DOCS / file).read_bytes()), "run: make schemas"
    assert DESCRIPTION["paths"][path]["get"]["tags"] == ["convenience"]
    assert "convenience" in DESCRIPTION["paths"][path]["description"]
