"""A real server's answers, read by httplint."""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from httplint import HttpRequestLinter, HttpResponseLinter, Note, levels

from tests.integration.served import HISTORY, LIVE, Server, a_server

# The contract says `public` (A9, A10), although a max-age says as much.
TOLERATED: Final = "STORE_PUBLIC_UNNECESSARY"
FEEDS: Final = ("/feed.atom", "/summary.json", "/status.json", "/badge.svg", "/badge/indexer/1.json")
PREFLIGHT: Final = {
    "Origin": "https://wallet.example",
    "Access-Control-Request-Method": "GET",
    "Access-Control-Request-Headers": "if-none-match",
}


def complaints(server: Server, method: str, path: str, http_code: int, headers: Mapping[str, str]) -> set[str]:
    """The names of the notes that warn, or worse, about an exchange that is to end with this code."""
    sent = {"Host": f"{server.host}:{server.port}", "User-Agent": "lookout-tests", **headers}
    request = HttpRequestLinter(start_time=time.time())
    request.process_request_topline(method.encode(), f"{server.base}{path}".encode(), b"1.1")
    request.process_headers([(name.encode(), text.encode()) for name, text in sent.items()])
    request.finish_content(True)
    answer = server.ask(method, path, sent)
    assert answer.http_code == http_code
    response = HttpResponseLinter(start_time=time.time())
    response.request = request
    response.is_head_response = method == "HEAD"
    response.process_response_topline(b"1.1", str(answer.http_code).encode(), b"")
    response.process_headers([(name.encode(), text.encode()) for name, text in answer.headers])
    response.feed_content(answer.body)
    response.finish_content(True)
    notes = list(every(response.notes))
    assert notes, "the linter has something to say about every answer"
    return {type(note).__name__ for note in notes if note.level in (levels.WARN, levels.BAD)}


def every(notes: Iterable[Note]) -> Iterator[Note]:
    for note in notes:
        yield note
        yield from every(note.subnotes)


@pytest.mark.parametrize("path", [LIVE, HISTORY, "/openapi.json", "/schemas/liveness.json", *FEEDS])
@pytest.mark.parametrize("headers", [{}, {"Origin": "https://wallet.example"}], ids=["a program", "a script"])
def test_documents_are_faultless_whole_and_unchanged(served: Server, path: str, headers: dict[str, str]) -> None:
    etag = served.ask("GET", path).header("etag") or ""
    assert complaints(served, "GET", path, 200, headers) == {TOLERATED}
    assert complaints(served, "HEAD", path, 200, headers) == {TOLERATED}
    assert complaints(served, "GET", path, 304, {**headers, "If-None-Match": etag}) == {TOLERATED}
    assert complaints(served, "HEAD", path, 304, {**headers, "If-None-Match": "*"}) == {TOLERATED}


@pytest.mark.parametrize("path", [LIVE, HISTORY, "/openapi.json"])
def test_everything_else_is_faultless(served: Server, path: str) -> None:
    assert complaints(served, "OPTIONS", path, 204, PREFLIGHT) == set()
    assert complaints(served, "DELETE", path, 405, {}) == set()
    assert complaints(served, "TRACE", path, 405, {}) == set()
    assert complaints(served, "GET", f"{path}/", 404, {}) == set()
    assert complaints(served, "HEAD", f"{path}/", 404, {}) == set()


def test_options_are_answered_as_to_a_preflight_even_if_it_is_none(served: Server) -> None:
    assert complaints(served, "OPTIONS", LIVE, 204, {}) == {"CORS_PREFLIGHT_ONLY"}  # A7 makes no difference


def test_refusals_are_faultless(tmp_path: Path) -> None:
    with a_server(tmp_path, rate_limit_per_minute=2) as server:  # without documents
        for path in (LIVE, HISTORY):
            for http_code in (503, 429):
                assert complaints(server, "GET", path, http_code, {}) == set()
                assert complaints(server, "HEAD", path, http_code, {}) == set()
            assert complaints(server, "OPTIONS", path, 429, PREFLIGHT) == set()
