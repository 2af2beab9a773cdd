"""A world built from its script, lived through, and held against the rules."""

import asyncio
import tempfile
import traceback
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from tests.simulation.silence import without_logs
from tests.simulation.worlds import rules_alerts, rules_history, rules_monitor, rules_rows, rules_servers
from tests.simulation.worlds.loop import Process, VirtualLoop
from tests.simulation.worlds.monitors import Host
from tests.simulation.worlds.scene import Broken, Concluded, Scene
from tests.simulation.worlds.script import Fault, Script
from tests.simulation.worlds.servers import Cache, Server, read_along
from tests.simulation.worlds.stores import ModelStore, SqliteStore, Store


class Lived(NamedTuple):
    """How a world went."""

    trace: str
    simulated_ms: int
    publications: int
    rule: str = ""
    """The rule that was broken, or the error that nobody expected; empty if all went well."""
    message: str = ""
    last: tuple[str, ...] = ()


RULES: Final = (
    *rules_monitor.RULES,
    *rules_rows.RULES,
    *rules_history.RULES,
    *rules_servers.RULES,
    *rules_alerts.RULES,
)


def live(script: Script) -> Lived:
    """Live through a world under every rule. The same script gives the same trace."""
    with without_logs(), tempfile.TemporaryDirectory(prefix="lookout-world-") as folder:
        loop = VirtualLoop()  # type: ignore[abstract]  # asyncio asks for a few of a loop's methods only
        scene = Scene(script, loop, [rule() for rule in RULES])
        store: Store = ModelStore(scene) if script.store == "model" else SqliteStore(scene, Path(folder))
        monitors = [Host(scene, store, number) for number in range(script.monitors)]
        servers = [Server(scene, store, number) for number in range(script.servers)]
        readers = Process("readers")
        scene.processes.append(readers)
        rule, message = "", ""
        try:
            asyncio._set_running_loop(loop)
            for number, server in enumerate(servers):
                loop.spawn(readers, read_along(scene, Cache(scene, server, number), number), f"reader {number}")
            for monitor in monitors:
                monitor.start()
            for server in servers:
                server.start()
            for fault in script.faults:
                _schedule(scene, fault, store, monitors, servers)
            loop.run_until(script.lasts_ms)
            scene.emit(Concluded())
            loop.run_until(script.lasts_ms)  # raises what was broken at the very end
        except Broken as broken:
            rule, message = broken.rule, str(broken)
        except Exception as error:  # noqa: BLE001  a bug, of Lookout or of the world: the traceback says which
            rule, message = type(error).__name__, "".join(traceback.format_exception(error))
        finally:
            lived = Lived(scene.trace, loop.now_ms(), scene.publications, rule, message, tuple(scene.last))
            _end(scene, loop, monitors, servers)
        return lived


def _schedule(scene: Scene, fault: Fault, store: Store, monitors: Sequence[Host], servers: Sequence[Server]) -> None:
    """What happens at an instant. Faults that merely last are looked up by the parts that they concern."""
    at_s, end_s = fault.at_ms / 1000, (fault.at_ms + fault.lasts_ms) / 1000
    loop = scene.loop
    match fault.kind:
        case "crash":
            monitor = monitors[int(fault.of)]
            loop.call_at(at_s, loop.after_steps, fault.size, monitor.kill)
            loop.call_at(end_s, monitor.start)
        case "stop":
            monitor = monitors[int(fault.of)]
            loop.call_at(at_s, loop.after_steps, fault.size, partial(_stop, scene, monitor, fault.lasts_ms))
        case "clock":
            loop.call_at(at_s, _set_clock, scene, monitors[int(fault.of)], fault)
        case "slew":
            loop.call_at(at_s, monitors[int(fault.of)].clock.slew, fault.size, fault.lasts_ms)
        case "reload":
            for when_s in (at_s, end_s):
                for monitor in monitors:
                    loop.call_at(when_s, loop.after_steps, fault.size, monitor.reload)
        case "session-lost" if isinstance(store, ModelStore):
            loop.call_at(at_s, store.lose_session)
        case "set-back" if isinstance(store, ModelStore):
            loop.call_at(at_s, store.set_back, fault.size)
        case "file-removed" if isinstance(store, SqliteStore):
            loop.call_at(at_s, store.remove_file, fault.size)
        case "lock-removed" if isinstance(store, SqliteStore):
            loop.call_at(at_s, store.remove_lock, fault.size)
        case "restart":
            loop.call_at(at_s, servers[int(fault.of)].kill)
            loop.call_at(end_s, servers[int(fault.of)].start)
        case _:
            pass


def _stop(scene: Scene, monitor: Host, lasts_ms: int) -> None:
    """The supervisor starts it again when it is gone, which it has to be soon (what is being sent has
    5 s, the last write another 5, the end 2)."""
    process = monitor.stop()

    def start() -> None:
        if process is not None and not process.dead and not scene.over:
            raise Broken("EndsWhenAsked", ("M14",), scene.ms, "a monitor that was asked to stop still runs")
        monitor.start()

    scene.loop.call_later(max(lasts_ms, 12_500) / 1000, start)


def _set_clock(scene: Scene, monitor: Host, fault: Fault) -> None:
    monitor.clock.step(fault.size)
    scene.note(f"the clock of monitor {fault.of} is set by {fault.size} ms")
    if fault.size < 0:
        scene.stepped_back_ms = scene.ms


def _end(scene: Scene, loop: VirtualLoop, monitors: Sequence[Host], servers: Sequence[Server]) -> None:
    """Nobody watches any more; what is under way comes to its end."""
    scene.over = True
    loop.error = None
    for server in servers:
        server.kill()
    for monitor in monitors:
        monitor.kill()
    loop.bury(scene.processes)
    asyncio._set_running_loop(None)
