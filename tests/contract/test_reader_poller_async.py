"""The Python reader's poller for asyncio, on the same clock and network."""

import asyncio
from collections.abc import AsyncGenerator, Mapping

import pytest

from lookout_reader import Answer, NoAnswer, Update, poll_async
from tests.contract.pollers import NOON, Clock, ItsOwnError, Network, Respond, fresh, polled, ppoi, report_text


@pytest.mark.clause("C3", "C9")
def test_the_async_poller_tells_it_too_and_gives_the_request_up_when_closed() -> None:
    clock, given_up = Clock(), []

    async def fetch(_url: str, _headers: Mapping[str, str]) -> Answer:
        if clock.elapsed_s:
            clock.sleep(200)
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                given_up.append(True)
                raise
        return Answer(200, report_text(NOON))

    async def sleep(seconds: float) -> None:
        clock.sleep(seconds)

    async def first_three() -> list[str]:
        updates = poll_async(
            "https://liveness.example",
            "protocol",
            history=None,
            fetch=fetch,
            now=clock.now,
            monotonic=clock.monotonic,
            sleep=sleep,
        )
        found = [ppoi(await anext(updates)) for _ in range(3)]
        assert isinstance(updates, AsyncGenerator)
        await updates.aclose()
        return found

    assert asyncio.run(first_three()) == ["unknown", "current", "stale"]
    assert given_up == [True]


@pytest.mark.clause("C9", "C10")
def test_the_async_poller_does_the_same() -> None:
    async def collect(respond: Respond) -> tuple[list[Update], Network]:
        clock = Clock()
        network = Network(clock, respond)

        async def fetch(url: str, headers: Mapping[str, str]) -> Answer | NoAnswer:
            return network.fetch(url, headers)

        async def sleep(seconds: float) -> None:
            clock.sleep(seconds)

        updates = []
        polling = poll_async(
            "https://liveness.example/",
            "protocol",
            fetch=fetch,
            now=clock.now,
            monotonic=clock.monotonic,
            chance=lambda: 0.0,
            sleep=sleep,
        )
        async for update in polling:
            if clock.elapsed_s > 600:
                break
            updates.append(update)
        return updates, network

    def respond(url: str, times: int, clock: Clock) -> Answer | NoAnswer:
        if 4 <= times <= 6:
            raise TimeoutError if times == 4 else ItsOwnError
        return fresh(url, times, clock)

    updates, network = asyncio.run(collect(respond))
    expected, asked = polled(respond, 600)
    assert updates[1:] == expected
    assert [request for request in network.asked if request[0] <= 600] == asked.asked
