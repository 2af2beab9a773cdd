"""Services of the operator's own in a real service: three kinds, what goes wrong with them, and a reload (R14)."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cases import text_of
from tests.integration.reloads import Running, running
from tests.integration.served import HISTORY, LIVE
from tests.integration.visits import found
from tests.integration.whole_service import answer
from tests.wait import until_async

OWN: Final = text_of("settings/own-services.toml")
CHECKS: Final = (("bundler", 1), ("bundler", 137), ("relayer", None), ("rpc-provider", 56))


async def rows_of(service: Running) -> dict[tuple[str, int | None], Any]:
    live = await answer(service.world.http, service.service.base + LIVE)
    return {(row["service"], row["chainId"]): row for row in live["checks"]}


async def until_status(service: Running, check: tuple[str, int | None], status: str) -> Any:
    async def is_so() -> bool:
        row = (await rows_of(service)).get(check)
        return row is not None and bool(row["status"] == status)

    await until_async(is_so, f"{check} is {status}", 90)
    return (await rows_of(service))[check]


async def shield(service: Running, name: str) -> str:
    return str((await answer(service.world.http, f"{service.service.base}/badge{name}.json"))["message"])


@pytest.mark.clause("R14", "C11")
@pytest.mark.first
async def test_they_are_added_by_a_reload_watched_and_taken_out_again(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        before = list(await rows_of(service))
        service.write(service.whole + OWN.format(base=service.world.base))
        outcome = await service.command()
        assert "added: bundler 1, bundler 137, relayer, rpc-provider 56" in outcome.output
        assert "restart" not in outcome.output
        for check in CHECKS:
            await until_status(service, check, "current")
        rows = await rows_of(service)
        assert list(rows) == [*before, *CHECKS]
        assert rows["relayer", None]["reason"] == "responding"
        assert rows["relayer", None]["metrics"] == {}
        assert rows["rpc-provider", 56]["reason"] == "synced"
        assert set(rows["rpc-provider", 56]["metrics"]) == {"position", "head"}
        history = await answer(service.world.http, service.service.base + HISTORY)
        assert [(row["service"], row["chainId"]) for row in history["rows"]] == list(rows)

        async def are_described() -> bool:
            about = await answer(service.world.http, service.service.base + "/about.json")
            return [each["title"] for each in about["services"]][-3:] == ["Bundlers", "Relayer", "RPC providers"]

        await until_async(are_described, "the description has them")
        assert [each for each in await asyncio.to_thread(found, service.service.base) if each.verdict == "fail"] == []

        await service.world.order("json/1", "status")
        await service.world.order("rpc/1/a", "wrong-chain")
        await service.world.order("rpc/56/a", "lag", by=8_000)
        assert (await until_status(service, ("relayer", None), "unavailable"))["reason"] == "unreachable"
        await until_status(service, ("bundler", 1), "unavailable")
        assert (await until_status(service, ("rpc-provider", 56), "degraded"))["reason"] == "behind"
        assert (await rows_of(service))["bundler", 137]["status"] == "current"

        async def is_summed_up() -> bool:
            badges = [await shield(service, name) for name in ("", "/bundler", "/relayer", "/rpc-provider")]
            return badges == ["not answering", "not answering", "not answering", "limited"]

        await until_async(is_summed_up, "the badges say so")
        metrics = await service.samples()
        assert metrics["lookout_row_status", "", "relayer", "unavailable"] == 1
        assert metrics["lookout_probes_total", "failed", "bundler"] > 0

        service.write(service.whole)
        outcome = await service.command()
        assert "removed: bundler 1, bundler 137, relayer, rpc-provider 56" in outcome.output

        async def are_gone() -> bool:
            return list(await rows_of(service)) == before and await shield(service, "") == "no problem seen"

        await until_async(are_gone, "they left")
