"""What a probe costs, beside Debian's prometheus-blackbox-exporter on the same JSON-RPC answer."""

import asyncio
import resource
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.figures import Figure
from bench.processes import a_folder, an_upstream, cpu_s
from lookout.sources.evm import EvmEndpoint
from lookout.sources.fetching import open_session

PROBES = 2_000
EXPORTER = "prometheus-blackbox-exporter"
TARGET = 0.2
MODULES = """
modules:
  head:
    prober: http
    http:
      method: POST
      headers: {Content-Type: application/json}
      body: '{"jsonrpc":"2.0","id":2,"method":"eth_getBlockByNumber","params":["latest",false]}'
      fail_if_body_not_matches_regexp: ['"number":"0x']
"""


def measure() -> Iterator[Figure]:
    with an_upstream() as base:
        kept_ms = asyncio.run(ours_ms(f"{base}/rpc/1/a"))
        new_ms = asyncio.run(ours_ms(f"{base}/rpc/1/once"))
        theirs = theirs_ms(f"{base}/rpc/1/a") if shutil.which(EXPORTER) else None
    if theirs is None:
        yield Figure("a head read, kept connection", f"{kept_ms:.3f} ms of CPU", f"apt-get install {EXPORTER}")
        yield Figure("a probe, new connection", f"{new_ms:.3f} ms of CPU", f"apt-get install {EXPORTER}")
        return
    against = f"{EXPORTER} {theirs:.3f} ms"
    kept, new = kept_ms / theirs, new_ms / theirs
    yield Figure(
        "a head read, kept connection", f"{kept_ms:.3f} ms of CPU", against, kept, f"at most {TARGET}", kept > TARGET
    )
    yield Figure("a probe, new connection", f"{new_ms:.3f} ms of CPU", against, new)


async def ours_ms(url: str) -> float:
    def now() -> int:
        return time.time_ns() // 1_000_000

    endpoint = EvmEndpoint("bench", 1, url)
    async with open_session(10) as session:
        await endpoint.read(session, now)
        began_s = _own_cpu_s()
        for _ in range(PROBES):
            await endpoint.read(session, now)
        return (_own_cpu_s() - began_s) * 1000 / PROBES


def _own_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def theirs_ms(url: str) -> float:
    probe = f"/probe?{urllib.parse.urlencode({'target': url, 'module': 'head'})}"
    with a_folder() as folder, an_exporter(folder) as (process, address):
        _ask(address + probe, 50)
        began_s = cpu_s(process.pid)
        _ask(address + probe, PROBES)
        return (cpu_s(process.pid) - began_s) * 1000 / PROBES


def _ask(url: str, times: int) -> None:
    for _ in range(times):
        with urllib.request.urlopen(url) as answer:  # noqa: S310  our own process on loopback
            if b"probe_success 1" not in answer.read():
                raise RuntimeError(f"{EXPORTER} does not understand the answer")


@contextmanager
def an_exporter(folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    (folder / "modules.yml").write_text(MODULES)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [EXPORTER, f"--config.file={folder / 'modules.yml'}", f"--web.listen-address={address}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(address)
            yield process, f"http://{address}"
        finally:
            process.terminate()


def _wait_for(address: str) -> None:
    host, port = address.split(":")
    for _ in range(100):
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{EXPORTER} did not begin to listen")
