"""Clients that know nothing of Lookout ask again and again, as they would ask any server that keeps to HTTP."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from hishel import SqliteStorage
from hishel.httpx import CacheTransport

from tests.integration.served import HISTORY, LIVE, Server, a_later_ledger, a_ledger, a_server, publish
from tests.wait import until

BOTH = (LIVE, HISTORY)


class Served(NamedTuple):
    folder: Path
    server: Server


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        yield Served(tmp_path, server)


def store_something_new(served: Served) -> None:
    """Wait until it is served, too."""
    old = [served.server.ask("HEAD", path).header("etag") for path in BOTH]
    publish(served.folder, a_later_ledger())

    def are_new() -> bool:
        return all(served.server.ask("HEAD", path).header("etag") not in old for path in BOTH)

    until(are_new, "the new documents are served")


@pytest.mark.clause("A4", "A5", "A9", "A10")
def test_a_cache_by_rfc_9111_stores_keeps_and_revalidates(served: Served) -> None:
    codes: list[int] = []  # what came over the wire

    class Wire(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            codes.append(response.status_code)
            return response

    storage = SqliteStorage(database_path=served.folder / "cache.db")
    with httpx.Client(transport=CacheTransport(Wire(trust_env=False), storage=storage, rfc=True)) as client:

        def get_both(**headers: str) -> list[httpx.Response]:
            return [client.get(served.server.base + path, headers=headers) for path in BOTH]

        first = get_both()
        assert all(response.extensions["caching"]["stored"] for response in first)
        contents = [response.content for response in first]
        assert [response.content for response in get_both()] == contents
        assert codes == [200, 200], "what is fresh is asked for once"
        assert [response.content for response in get_both(**{"Cache-Control": "no-cache"})] == contents
        assert codes == [200, 200, 304, 304]
        store_something_new(served)
        new = get_both(**{"Cache-Control": "no-cache"})
        assert codes == [200, 200, 304, 304, 200, 200]
        assert all(n.json()["generatedAt"] > f.json()["generatedAt"] for n, f in zip(new, first, strict=True))
