"""What happens in a world, written down: drawn from a seed, or read from a file, and small enough to be read."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final, Literal

import msgspec
from msgspec import Struct

from lookout.demo.sim.chain import ChainLayout, Layout
from lookout.demo.sim.faults import Fault as UpstreamFault
from lookout.demo.sim.faults import draw_faults

ORIGIN_AT: Final = 1_793_880_000_000  # 2026-11-05, the start of a bucket
SLOW_CHAIN: Final = ChainLayout(1, 12_000, 25_700_000)
FAST_CHAIN: Final = ChainLayout(56, 450, 92_000_000, endpoints=2, members=3)
TARGETS: Final = ("chat", "pager")  # of alerts

FaultKind = Literal[
    "crash",  # of a monitor, `size` steps after its instant; it starts again when the fault is over
    "stop",  # the same, asked for politely
    "clock",  # a monitor's clock is set by `size` ms
    "slew",  # and runs off by `size` ms in all
    "bug",  # a source's probe dies of a bug
    "few",  # a source answers for too few checks
    "many",  # a source answers for a check that is not its own
    "write-fails",
    "answer-lost",  # a write takes effect, and fails all the same
    "write-hangs",  # until the fault is over
    "write-slow",  # by `size` ms
    "session-lost",  # the store lets go of its writer
    "set-back",  # the store is what it was `size` ms ago
    "load-fails",
    "without",  # monitors that start meanwhile do not watch this
    "reload",  # the same, but those that run reload when it goes and when it is back, `size` steps after the instant
    "send-fails",  # a target accepts nothing; with `size` 1, sending dies of a bug
    "send-hangs",  # until the fault is over: before anything is sent, or with `size` 1 after it was accepted
    "send-unanswered",  # a target accepts, and it looks as if it had not
    "restart",  # of a server
    "read-fails",
    "read-hangs",  # of the live report, or with `size` 1 of the history
    "damaged",  # a document's bytes are not what was written
    "lags",  # a server's store is what it was `size` ms ago
    "empty",  # a server's store has no documents
    "offline",  # a server cannot be reached
    "no-thread",  # what sends to a target finds no thread to begin with
    "file-removed",  # the SQLite store's; with `size` 1 all that is beside it, too, but the lock
    "lock-removed",  # by which monitors on a SQLite file are kept apart; with `size` 1 the file, too
]


class Fault(Struct, frozen=True, omit_defaults=True):
    """From ``at_ms`` on, for ``lasts_ms``; ``of`` says of what, where there are several."""

    kind: FaultKind
    at_ms: int
    lasts_ms: int = 0
    of: str = ""
    size: int = 0


class Script(Struct, frozen=True):
    """A whole world. Whatever is not written here, such as how long each answer takes, follows from the seed."""

    seed: int
    lasts_ms: int
    chains: int = 1
    monitors: int = 1
    servers: int = 1
    store: Literal["model", "sqlite"] = "model"
    faults: tuple[Fault, ...] = ()
    episodes: tuple[UpstreamFault, ...] = ()

    @property
    def layout(self) -> Layout:
        return (SLOW_CHAIN, FAST_CHAIN)[: self.chains]


_MINUTE: Final = 60_000
_HOUR: Final = 3_600_000
_DAY: Final = 86_400_000


def draw(seed: int) -> Script:
    """The world of a seed: mostly of minutes, at times of days; one in eight on a real SQLite file, every other with
    a standby."""
    chance = Random(f"worlds/{seed}")
    store: Literal["model", "sqlite"] = "sqlite" if chance.random() < 1 / 8 else "model"
    longest_ms = 2 * _DAY if chance.random() < 0.01 else 8 * _HOUR if chance.random() < 0.05 else _HOUR
    lasts_ms = int(_magnitude(chance, 5 * _MINUTE, longest_ms))
    chains = 2 if chance.random() < 0.3 else 1
    monitors = 2 if chance.random() < 0.5 else 1
    servers = 2 if chance.random() < 0.3 else 1
    script = Script(seed, lasts_ms, chains, monitors, servers, store)
    # All kinds at once would hide each other: a world has a few, more or less often.
    intensity = _magnitude(chance, 20, 1_000)
    episodes = draw_faults(script.layout, seed, ORIGIN_AT, ORIGIN_AT + lasts_ms, intensity)
    faults = tuple(sorted(_faults(script, chance), key=lambda fault: fault.at_ms))
    return msgspec.structs.replace(script, episodes=episodes, faults=faults)


def _faults(script: Script, chance: Random) -> Iterator[Fault]:
    drawn = chance.sample(_DRAWN, chance.randrange(0, 11))
    others = ("session-lost", "set-back", "lags", "empty", "damaged") if script.store == "sqlite" else _SQLITE
    drawn = [kind for kind in drawn if kind not in others]
    if set(_SQLITE) <= set(drawn):  # without lock and file nothing is left that says who wrote last
        drawn.remove("lock-removed")
    per_hour = _magnitude(chance, 1, 40)
    for kind in drawn:
        at_ms = chance.expovariate(per_hour) * _HOUR
        while at_ms < script.lasts_ms:
            yield _fault(kind, int(at_ms), script, chance)
            at_ms += chance.expovariate(per_hour) * _HOUR


_SQLITE: Final = ("file-removed", "lock-removed")
_DRAWN: Final[list[FaultKind]] = list(FaultKind.__args__)  # type: ignore[attr-defined]


def _fault(kind: FaultKind, at_ms: int, script: Script, chance: Random) -> Fault:
    lasts_ms = int(_magnitude(chance, 200, 20 * _MINUTE))
    of, size = "", 0
    sources = ["messaging", "ppoi", "broadcasters", *(f"indexer/{chain.chain_id}" for chain in script.layout)]
    chains = [f"chain/{chain.chain_id}" for chain in script.layout[1:]]
    match kind:
        case "crash" | "stop":
            of, size = str(chance.randrange(script.monitors)), chance.randrange(30)
        case "clock":
            of, lasts_ms = str(chance.randrange(script.monitors)), 0
            size = int(_magnitude(chance, 300, 20 * _DAY)) * chance.choice((-1, 1))
        case "slew":
            of, size = str(chance.randrange(script.monitors)), chance.randrange(-1_000, 1_000)
            lasts_ms = max(lasts_ms, 10 * abs(size) + 1)
        case "bug":
            of = chance.choice([*sources, *(f"rpc/{chain.chain_id}/0" for chain in script.layout)])
        case "few" | "many":
            of = chance.choice(("ppoi", "broadcasters"))
        case "write-hangs":
            lasts_ms = int(_magnitude(chance, 200, 3 * _MINUTE))
        case "write-slow":
            size = int(_magnitude(chance, 100, 20_000))
        case "session-lost":
            lasts_ms = 0
        case "lock-removed":
            lasts_ms = 0
        case "file-removed":
            lasts_ms, size = 0, chance.randrange(2)
        case "set-back" | "lags":
            size = int(_magnitude(chance, 1_000, _HOUR))
        case "without":
            of = chance.choice([*sources, *chains])
        case "reload":
            others = ["heartbeat", "nothing", *(f"target/{target}" for target in TARGETS)]
            of, size = chance.choice([*sources, *chains, *others]), chance.randrange(30)
        case "send-fails" | "send-hangs" | "send-unanswered" | "no-thread":
            of, size = chance.choice(TARGETS), chance.randrange(2)
        case "restart" | "read-fails" | "lags" | "empty" | "offline":
            of = str(chance.randrange(script.servers))
        case "damaged" | "read-hangs":
            of, size = str(chance.randrange(script.servers)), chance.randrange(2)
    if kind in ("read-fails", "read-hangs", "lags", "empty", "damaged"):
        of = of or str(chance.randrange(script.servers))
    return Fault(kind, at_ms, lasts_ms, of, size)


def _magnitude(chance: Random, low: float, high: float) -> float:
    """Of any magnitude in this range as likely as of any other."""
    return float(low * (high / low) ** chance.random())


def read_script(path: Path) -> Script:
    return msgspec.json.decode(path.read_bytes(), type=Script)


def encode_script(script: Script) -> bytes:
    return msgspec.json.format(msgspec.json.encode(script), indent=2) + b"\n"
