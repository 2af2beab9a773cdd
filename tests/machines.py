"""What a monitor of a test runs on."""

from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from lookout.base.clock import Clock
from lookout.base.concurrency import DaemonThread
from lookout.monitor.assembly import Machine
from lookout.monitor.metrics import Instruments
from lookout.store.protocol import Writer


def a_machine(writer: Writer, clock: Clock, registry: CollectorRegistry | None = None, **replaced: Any) -> Machine:
    """The real parts, but for those that are replaced; its chance is the same in every run."""
    instruments = Instruments(registry or CollectorRegistry(), clock)
    if "store" not in replaced:
        replaced["store"] = DaemonThread("store").__enter__()
    return Machine(**{"writer": writer, "clock": clock, "instruments": instruments, "chance": Random(1), **replaced})
