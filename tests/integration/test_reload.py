"""The configuration read again by a real service: under load, from files that are bad, on standby, at the start."""

import asyncio
import signal
from pathlib import Path

from tests.commands import a_command
from tests.integration.fast import World
from tests.integration.reloads import reload, running, without
from tests.integration.served import LIVE, a_free_port
from tests.integration.whole_service import answer
from tests.wait import until_async


async def test_a_bad_file_or_another_monitor_changes_nothing_and_everything_wrong_is_said(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        path, admin, port = tmp_path / "lookout.toml", service.service.monitor_admin, a_free_port()
        bad = {
            f'[admin]\nmonitor = "{admin}"\n[policy]\nrecheck = 30\njitter_s = -1\n': (
                1,
                ("policy.recheck: unknown key", "policy.jitter_s"),
            ),
            service.whole.replace("[history]\n", "[history]\nbucket_s = 100\n"): (
                1,
                ("history.bucket_s: the stored history has buckets of 300 s",),
            ),
            # Emptied, but for where to ask the monitor.
            f'[admin]\nmonitor = "{admin}"\n': (1, ("names nothing to watch; add a source",)),
            "[admin\n": (2, ("not TOML: Expected ']' at the end of a table declaration",)),
            "": (2, ("cannot be read: No such file or directory",)),
        }
        for text, (exit_code, complaints) in bad.items():
            path.unlink()
            if text:
                path.write_text(text)
            done = await service.command()
            assert done.exit_code == exit_code, done.output
            await service.hang_up("refused")
            problems = str([line["problem"] for line in service.events("not reloaded; everything is as it was")])
            for complaint in complaints:
                assert f"lookout: {path}: " in done.stderr
                assert complaint in done.stderr
                assert complaint in problems
        # The command asks no monitor if it cannot read where that is.
        assert (await service.count("refused"), await service.count("applied")) == (8, 0)
        live = await answer(service.world.http, service.service.base + LIVE)
        assert {row["status"] for row in live["checks"]} == {"current", "unmonitored"}

        service.write(service.whole)
        other = tmp_path / "other.toml"
        cases = {
            '"127.0.0.1:0"': (2, "admin.monitor: names no port to ask; send the monitor SIGHUP instead"),
            f'"127.0.0.1:{port}"': (1, f"no monitor answers at 127.0.0.1:{port}, which admin.monitor names"),
            f'"{service.service.server_admin}"': (1, "refused: there are /metrics, /healthz and /readyz"),
            f'"127.0.0.1:{service.service.port}"': (1, "is not a monitor"),
            f'"{admin}"': (1, f"has another configuration, {tmp_path}/lookout.toml; nothing was read again"),
        }
        for address, (exit_code, said) in cases.items():
            text = service.whole.replace(f'monitor = "{admin}"', f"monitor = {address}")
            other.write_text(text.replace(f'server = "{service.service.server_admin}"', 'server = ""'))
            done = await asyncio.to_thread(reload, other)
            assert (done.exit_code, said in done.stderr) == (exit_code, True), (address, done.output)
            assert "Traceback" not in done.output
        assert await service.count("applied") == 0
        done = await service.command()
        assert (done.exit_code, done.output) == (0, f"reloaded {path}: nothing changed\n")


def chains_of(world: World) -> set[int | None]:
    return {row["chainId"] for row in world.document()["checks"]}


async def test_a_standby_that_reloads_takes_over_with_the_new_file(tmp_path: Path) -> None:
    async with running(tmp_path, "monitor") as service:
        with a_command(tmp_path, "monitor", "-c", "lookout.toml") as standby:
            await until_async(lambda: bool(service.events("waiting for the other monitor to end")), "one stands by")
            service.write(without(service.whole, 56))
            standby.send_signal(signal.SIGHUP)
            await until_async(lambda: bool(service.events("reloaded")), "it has read the file")
            service.write(service.whole)  # without a signal to read it
            assert 56 in chains_of(service.world)
            service.process.kill()
            service.process.wait()
            await service.world.until(lambda: 56 not in chains_of(service.world), "it took over")
