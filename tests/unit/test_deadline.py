"""A time limit that holds also in a task that is being cancelled."""

import asyncio

import pytest

from lookout.base.concurrency import ends_within


async def test_work_that_ends_in_time_has_ended_and_what_it_raises_is_raised() -> None:
    async def fail() -> None:
        raise ValueError("why")

    assert await ends_within(asyncio.sleep(0), 10)
    with pytest.raises(ValueError, match="why"):
        await ends_within(fail(), 10)


@pytest.mark.clause("M14")
async def test_work_that_hangs_is_given_up_also_by_a_task_that_was_cancelled() -> None:
    found = []

    async def end() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            found.append(await ends_within(asyncio.sleep(1000), 0.01))

    task = asyncio.create_task(end())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert found == [False]


async def test_a_cancellation_meanwhile_is_not_lost() -> None:
    hanging = asyncio.Event()
    task = asyncio.create_task(ends_within(hanging.wait(), 1000))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
