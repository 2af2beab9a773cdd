"""Probing the broadcasters sources against a node on loopback."""

import asyncio
from collections.abc import Mapping
from typing import Any

from lookout.config.settings import Upstreams
from lookout.core.model import Check, Found
from lookout.protocols.broadcasters.seen import NOTHING_SEEN, BroadcastersTable, SeenBroadcasters
from lookout.protocols.broadcasters.source import BROADCASTERS
from lookout.protocols.client.session import open_session
from lookout.protocols.source import observe
from tests.contract.protocols.upstreams import Answer, Asked, answering

ONE, POLYGON = Check("broadcasters", 1), Check("broadcasters", 137)


def settings(url: str = "http://127.0.0.1:1", **changed: Any) -> BroadcastersTable:
    return BroadcastersTable(**{"url": url, "chains": (1,), **changed})


def probes(
    answer: Answer, *instants: int, seen: SeenBroadcasters = NOTHING_SEEN, **changed: Any
) -> tuple[list[Mapping[Check, Found]], list[Asked], SeenBroadcasters]:
    """Probe a node that answers like this at each of these instants: what was found at each of them, what the node was
    asked, and what is to be kept."""

    async def converse() -> tuple[list[Mapping[Check, Found]], list[Asked], SeenBroadcasters]:
        async with answering(answer) as (url, asked), open_session(20) as session:
            upstreams = Upstreams(BROADCASTERS.sources("broadcasters", settings(url, **changed)), ())
            upstreams.resume({"broadcasters": seen})
            found: list[Mapping[Check, Found]] = []
            for at in instants:
                answers = [await observe(source, session, lambda at=at: at) for source in upstreams.sources]  # type: ignore[misc]
                found.append({check: what for each in answers for check, what in each.items()})
            return found, asked, upstreams.seen()["broadcasters"]

    return asyncio.run(converse())
