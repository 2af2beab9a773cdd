"""What a monitor of a test runs on."""

from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from lookout.base.clock import Clock
from lookout.base.concurrency import DaemonThread
from lookout.features.feature import Host
from lookout.monitor.assembly import Machine
from lookout.monitor.metrics import Instruments
from lookout.store.protocol import Writer


def a_machine(writer: Writer, clock: Clock, registry: CollectorRegistry | None = None, **replaced: Any) -> Machine:
    """The real parts, but for those that are replaced; its chance is the same in every run."""
    instruments = Instruments(registry or CollectorRegistry(), clock)
    if "store" not in replaced:
        replaced["store"] = DaemonThread("store").__enter__()
    return Machine(**{"writer": writer, "clock": clock, "instruments": instruments, "chance": Random(1), **replaced})


def a_host(registry: CollectorRegistry, clock: Clock, **replaced: Any) -> Host:
    """A monitor as a feature sees it, which knows and judges nothing."""
    instruments = Instruments(registry, clock)
    parts: dict[str, Any] = {
        "around": None,
        "ledger": None,
        "clock": clock,
        "open_thread": DaemonThread,
        "now": clock.now,
        "heights": lambda _: {},
        "set_gaps": lambda *_: None,
        "causes": {},
        "find_silenced": lambda *_: frozenset(),
        "judge": instruments.board.judge,
        "describe_endpoints": instruments.board.describe_endpoints,
        "publish_soon": lambda: None,
        "record": lambda _: None,
        "note": instruments.board.note,
        "count": instruments.count,
        "set_samples": instruments.set_samples,
    }
    return Host(**{**parts, **replaced})
