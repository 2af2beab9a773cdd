"""Probing the broadcasters source against a node on loopback."""

import asyncio
from collections.abc import Mapping
from typing import Any

from lookout.core.model import Check, Found
from lookout.settings import Broadcasters
from lookout.sources.broadcasters import BroadcastersSource, broadcasters_source
from lookout.sources.fetching import open_session
from lookout.sources.sightings import NOTHING_SEEN, Seen
from lookout.sources.source import observe
from tests.contract.sources.upstreams import Answer, Asked, answering

ONE, POLYGON = Check("broadcasters", 1), Check("broadcasters", 137)


def settings(url: str = "http://127.0.0.1:1", **changed: Any) -> Broadcasters:
    return Broadcasters(**{"url": url, "chains": (1,), **changed})


def probes(
    answer: Answer, *instants: int, seen: Seen = NOTHING_SEEN, **changed: Any
) -> tuple[list[Mapping[Check, Found]], list[Asked], BroadcastersSource]:
    """Probe a node that answers like this at each of these instants."""

    async def converse() -> tuple[list[Mapping[Check, Found]], list[Asked], BroadcastersSource]:
        async with answering(answer) as (url, asked), open_session(5) as session:
            source = broadcasters_source(settings(url, **changed), seen)
            found = [await observe(source, session, lambda at=at: at) for at in instants]  # type: ignore[misc]
            return found, asked, source

    return asyncio.run(converse())
