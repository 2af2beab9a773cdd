"""The whole service at the contract's cadence, the monitor on one core, with many rows: how old rows get, how soon what
was observed is stored and served, and what the monitor takes."""

import http.client
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from bench.figures import Figure, percentile
from bench.processes import a_folder, a_process, an_upstream, cpu_s, memory_mb
from lookout.base.instants import parse_instant
from lookout.base.sockets import a_free_port
from lookout.demo.sim.upstreams import REQUIRED_LIST
from lookout.documents.api import paths
from lookout.store.sqlite import SqliteReader

LIVE, _ = paths("protocol")
MONITOR = ("monitor", "-c", "lookout.toml")
WATCH_S = 75
OLDEST_S = 44
WITHIN_S = 1.0


def measure() -> Iterator[Figure]:
    for chains in (5, 525, 5250):
        yield from watch(chains)


def watch(chains: int) -> Iterator[Figure]:
    rows = 4 * chains + 1
    promised = rows < 10_000
    with a_folder() as folder, an_upstream(chains) as base:
        port = a_free_port()
        (folder / "lookout.toml").write_text(f'[server]\nlisten = "127.0.0.1:{port}"\n' + a_config(base, chains))
        with a_process(folder, "serve", "-c", "lookout.toml", core=-1), a_process(folder, *MONITOR, core=0) as monitor:
            stored, served = Delays(), Delays()
            threads = [
                Thread(target=observe, args=(_from_store(folder / "lookout.db"), stored, WATCH_S)),
                Thread(target=observe, args=(from_server(port), served, WATCH_S)),
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            share = cpu_s(monitor.pid) / WATCH_S
            memory = memory_mb(monitor.pid)
    oldest = max(stored.ages_s, default=float("inf"))
    yield Figure(
        f"oldest row of {rows:,} at 30 s",
        f"{oldest:.1f} s",
        "",
        None,
        f"{OLDEST_S} s" if promised else "",
        promised and oldest > OLDEST_S,
    )
    for name, delays in (("stored", stored), ("served", served)):
        late = percentile(delays.delays_s, 99)
        yield Figure(
            f"observed to {name}, 99th percentile, {rows:,} rows",
            f"{late:.2f} s",
            "",
            None,
            f"under {WITHIN_S:.0f} s" if promised else "",
            promised and late >= WITHIN_S,
        )
    yield Figure(f"the monitor of {rows:,} rows", f"{share:.0%} of a core, {memory:.0f} MB")


@dataclass
class Delays:
    """How old answering rows were in each report, and how long each observation and each report took to be there."""

    ages_s: list[float] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)
    reports_s: list[float] = field(default_factory=list)


def observe(look: Callable[[], bytes | None], into: Delays, for_s: float, every_s: float = 0.05) -> None:
    seen: dict[str, str] = {}
    until = time.monotonic() + for_s
    while time.monotonic() < until:
        time.sleep(every_s)
        body = look()
        now_s = time.time()
        if body is None:
            continue
        report = json.loads(body)
        generated_s = parse_instant(report["generatedAt"]) / 1000
        if seen:  # the first one may have been there before
            into.reports_s.append(now_s - generated_s)
        for row in report["checks"]:
            if row["observedAt"] is None:
                continue
            observed_s = parse_instant(row["observedAt"]) / 1000
            into.ages_s.append(generated_s - observed_s)
            name = f"{row['service']} {row['chainId']}"
            if name in seen and seen[name] != row["observedAt"]:
                into.delays_s.append(now_s - observed_s)
            seen[name] = row["observedAt"]


def _from_store(path: Path) -> Callable[[], bytes | None]:
    """The live report whenever there is a new one in the store."""
    reader = SqliteReader(path)

    def look() -> bytes | None:
        document = reader.read("live") if reader.changed() else None
        return None if document is None else document.body

    return look


def from_server(port: int) -> Callable[[], bytes | None]:
    """The live report whenever the server has a new one."""
    etag = ""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)

    def look() -> bytes | None:
        nonlocal etag
        try:
            connection.request("GET", LIVE, headers={"If-None-Match": etag})
            answer = connection.getresponse()
            body = answer.read()
        except OSError:
            connection.close()
            return None  # it does not listen yet
        if answer.status != 200:
            return None
        etag = answer.headers["ETag"]
        return body

    return look


def a_config(base: str, chains: int, store: str = "sqlite:lookout.db") -> str:
    """All but the [server] table's first lines."""
    ids = list(range(1, chains + 1))
    text = f'rate_limit_per_minute = 0\n[store]\nurl = "{store}"\n[log]\nlevel = "error"\nformat = "json"\n'
    text += '[admin]\nmonitor = ""\nserver = ""\n'
    for n in ids:
        rpc = ", ".join(f'"{base}/rpc/{n}/{letter}"' for letter in "abc")
        text += f'[[chains]]\nid = {n}\nname = "N{n}"\nblock_time_s = 12\nrpc = [{rpc}]\n'
        for service in ("indexer", "hosted-indexer"):
            text += (
                f'[[{service}]]\nchain = {n}\nkind = "squid"\nurl = "{base}/squid/{n}/{service}"\nconfirmations = 5\n'
            )
    networks = ", ".join(f'"{n}" = "N{n}"' for n in ids)
    text += (
        f'[ppoi]\nurl = "{base}/ppoi"\nrequired_list = "{REQUIRED_LIST}"\nchains = {ids}\nnetworks = {{{networks}}}\n'
    )
    return text + f'[messaging]\nurl = "{base}/waku"\n[broadcasters]\nurl = "{base}/waku"\nchains = {ids}\n'
