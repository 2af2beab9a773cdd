"""A waku node's store, for tests: pages, newest first, over real HTTP."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.contract.protocols.announcers import a_page
from tests.contract.protocols.upstreams import Asked, Reply


def query_of(asked: Asked) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(asked.target).query).items()}


class Store:
    """Answers as a real one does: by topic and time, in pages that go on at a cursor it gave out."""

    def __init__(self, messages: Iterable[dict[str, Any]] = (), *, page_size: int = 1) -> None:
        self.messages = list(messages)
        self._page_size = page_size

    def __call__(self, asked: Asked) -> Reply:
        query = query_of(asked)
        kept = sorted(self.messages, key=lambda message: message["timestamp"], reverse=True)
        cursors = [f"0x{number}" for number in range(len(kept))]
        cursor = query.get("cursor")
        if cursor is not None and cursor not in cursors:
            return 400, b"Problem parsing cursor"
        matching = [
            (cursors[len(kept) - 1 - number], message)
            for number, message in enumerate(kept)
            if int(query["startTime"]) <= message["timestamp"] <= int(query.get("endTime", 1 << 63))
            and message["contentTopic"] == query["contentTopics"]
            and (cursor is None or cursors.index(cursor) > len(kept) - 1 - number)
        ]
        page = matching[: self._page_size]
        last = page[-1][0] if len(matching) > len(page) else None
        return 200, a_page(*(message for _, message in reversed(page)), cursor=last)
