"""Clients that know nothing of Lookout ask again and again, as they would ask any server that keeps to HTTP."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from hishel import SqliteStorage
from hishel.httpx import CacheTransport

from tests.integration.served import HISTORY, LIVE, Server, a_later_ledger, a_ledger, a_server, publish
from tests.wait import until

BOTH = pytest.mark.parametrize("path", [LIVE, HISTORY], ids=["live", "history"])


class Served(NamedTuple):
    folder: Path
    server: Server


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        yield Served(tmp_path, server)


def store_something_new(served: Served, path: str) -> None:
    """Wait until it is served, too."""
    old = served.server.ask("GET", path).header("etag")
    publish(served.folder, a_later_ledger())
    until(lambda: served.server.ask("HEAD", path).header("etag") != old, "the new document is served")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not there (Debian: apt-get install curl)")
@pytest.mark.clause("A4", "A5")
@BOTH
def test_curl_compares_the_etag_that_it_saved(served: Served, path: str) -> None:
    tag, body = served.folder / "etag", served.folder / "body"

    def curl() -> str:
        body.unlink(missing_ok=True)
        command = ["curl", "--silent", "--show-error", "--max-time", "10", "--write-out", "%{http_code}"]
        command += ["--etag-save", str(tag), "--etag-compare", str(tag), "--output", str(body)]
        return subprocess.run([*command, served.server.base + path], capture_output=True, text=True, check=True).stdout

    assert curl() == "200"
    first = json.loads(body.read_bytes())
    assert curl() == "304"
    assert not body.exists() or body.read_bytes() == b""
    store_something_new(served, path)
    assert curl() == "200"
    assert json.loads(body.read_bytes())["generatedAt"] > first["generatedAt"]
    assert curl() == "304"


@pytest.mark.clause("A4", "A5", "A9", "A10")
@BOTH
def test_a_cache_by_rfc_9111_stores_keeps_and_revalidates(served: Served, path: str) -> None:
    codes: list[int] = []  # what came over the wire

    class Wire(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            codes.append(response.status_code)
            return response

    storage = SqliteStorage(database_path=served.folder / "cache.db")
    with httpx.Client(transport=CacheTransport(Wire(), storage=storage, rfc=True)) as client:
        url, again = served.server.base + path, {"Cache-Control": "no-cache"}
        first = client.get(url)
        assert first.extensions["caching"]["stored"]
        assert codes == [200]
        assert client.get(url).content == first.content  # fresh: nobody was asked
        assert codes == [200]
        assert client.get(url, headers=again).content == first.content
        assert codes == [200, 304]
        store_something_new(served, path)
        new = client.get(url, headers=again)
        assert codes == [200, 304, 200]
        assert new.json()["generatedAt"] > first.json()["generatedAt"]
