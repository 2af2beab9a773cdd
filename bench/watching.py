"""The whole monitor at the contract's cadence, on one core, with many rows: how old rows get, and what it takes."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure
from bench.processes import a_folder, an_upstream, cpu_s, memory_mb, only_on
from bench.upstream import LIST
from lookout.core.instants import parse_instant
from lookout.store.sqlite import SqliteReader

LOOKOUT = Path(sys.executable).parent / "lookout"
WATCH_S = 75
OLDEST_S = 44
STORED_WITHIN_S = 1.0


def measure() -> Iterator[Figure]:
    for chains in (5, 525, 5250):
        yield from watch(chains)


def watch(chains: int) -> Iterator[Figure]:
    rows = 4 * chains + 1
    promised = rows < 10_000
    with a_folder() as folder, an_upstream(chains) as base:
        (folder / "lookout.toml").write_text(a_config(base, chains))
        with subprocess.Popen(
            [LOOKOUT, "monitor", "-c", "lookout.toml"],
            cwd=folder,
            stderr=(folder / "log").open("wb"),
            preexec_fn=lambda: only_on(0),
        ) as process:
            try:
                ages, delays = _observe(folder / "lookout.db", WATCH_S)
                share = cpu_s(process.pid) / WATCH_S
                memory = memory_mb(process.pid)
            finally:
                process.send_signal(signal.SIGTERM)
    oldest = max(ages, default=float("inf"))
    delays.sort()
    late = delays[int(len(delays) * 0.99)] if delays else float("inf")
    yield Figure(
        f"oldest row of {rows:,} at 30 s",
        f"{oldest:.1f} s",
        "",
        None,
        f"{OLDEST_S} s" if promised else "",
        promised and oldest > OLDEST_S,
    )
    yield Figure(
        f"observed to stored, 99th percentile, {rows:,} rows",
        f"{late:.2f} s",
        "",
        None,
        "under 1 s" if promised else "",
        promised and late >= STORED_WITHIN_S,
    )
    yield Figure(f"the monitor of {rows:,} rows", f"{share:.0%} of a core, {memory:.0f} MB")


def _observe(path: Path, for_s: float) -> tuple[list[float], list[float]]:
    """How old answering rows were in each stored report, and how long each observation took to be there."""
    ages: list[float] = []
    delays: list[float] = []
    seen: dict[str, str] = {}
    reader = SqliteReader(path)
    began = time.monotonic()
    while time.monotonic() < began + for_s:
        time.sleep(0.05)
        if not reader.changed():
            continue
        document = reader.read("live")
        now_s = time.time()
        if document is None:
            continue
        for row in json.loads(document.body)["checks"]:
            if row["observedAt"] is None:
                continue
            observed_s = parse_instant(row["observedAt"]) / 1000
            ages.append(document.generated_at / 1000 - observed_s)
            name = f"{row['service']} {row['chainId']}"
            if name in seen and seen[name] != row["observedAt"]:
                delays.append(now_s - observed_s)
            seen[name] = row["observedAt"]
    reader.close()
    return ages, delays


def a_config(base: str, chains: int) -> str:
    ids = list(range(1, chains + 1))
    text = '[store]\nurl = "sqlite:lookout.db"\n[log]\nlevel = "error"\nformat = "json"\n'
    for n in ids:
        rpc = ", ".join(f'"{base}/rpc/{n}/{letter}"' for letter in "abc")
        text += f'[[chains]]\nid = {n}\nname = "N{n}"\nblock_time_s = 12\nrpc = [{rpc}]\n'
        for service in ("indexer", "hosted-indexer"):
            text += (
                f'[[{service}]]\nchain = {n}\nkind = "squid"\nurl = "{base}/squid/{n}/{service}"\nconfirmations = 5\n'
            )
    networks = ", ".join(f'"{n}" = "N{n}"' for n in ids)
    text += f'[ppoi]\nurl = "{base}/ppoi"\nrequired_list = "{LIST}"\nchains = {ids}\nnetworks = {{{networks}}}\n'
    return text + f'[messaging]\nurl = "{base}/waku"\n[broadcasters]\nurl = "{base}/waku"\nchains = {ids}\n'
