"""What a probe costs, beside Debian's prometheus-blackbox-exporter on the same JSON-RPC answer."""

import resource
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from bench.figures import Figure
from bench.processes import a_folder, an_upstream, cpu_s, program
from lookout.app.process import run
from lookout.base.sockets import a_free_port
from lookout.protocols.client.session import open_session
from lookout.protocols.evm import EvmEndpoint

PROBES = 1_000
ROUNDS = 4
EXPORTER = "prometheus-blackbox-exporter"
TARGET = 0.5
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
    with an_upstream() as base, a_folder() as folder:
        exporter = an_exporter(folder, f"{base}/rpc/1/a") if program(EXPORTER) else nullcontext()
        ours, theirs = [], []
        with exporter as their_ms:
            for _ in range(ROUNDS):  # by turns, so that what else the machine does falls on each of them
                ours.append(run(ours_ms(f"{base}/rpc/1/a")))
                if their_ms is not None:
                    theirs.append(their_ms())
    name, cpu = "a probe, new connection", f"{min(ours):.3f} ms of CPU"
    if not theirs:
        yield Figure(name, cpu, f"apt-get install {EXPORTER}")
        return
    ratio = min(ours) / min(theirs)
    yield Figure(name, cpu, f"{EXPORTER} {min(theirs):.3f} ms", ratio, f"at most {TARGET}", ratio > TARGET)


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


def _ask(url: str, times: int) -> None:
    for _ in range(times):
        with urllib.request.urlopen(url) as answer:  # noqa: S310  our own process on loopback
            if b"probe_success 1" not in answer.read():
                raise RuntimeError(f"{EXPORTER} does not understand the answer")


@contextmanager
def an_exporter(folder: Path, target: str) -> Iterator[Callable[[], float]]:
    """A running exporter; called, it probes the target; the CPU of one probe, in milliseconds."""
    (folder / "modules.yml").write_text(MODULES)
    address = f"127.0.0.1:{a_free_port()}"
    command = [EXPORTER, f"--config.file={folder / 'modules.yml'}", f"--web.listen-address={address}"]
    probe = f"http://{address}/probe?{urllib.parse.urlencode({'target': target, 'module': 'head'})}"
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:

        def their_ms() -> float:
            began_s = cpu_s(process.pid)
            _ask(probe, PROBES)
            return (cpu_s(process.pid) - began_s) * 1000 / PROBES

        try:
            _wait_for(address)
            _ask(probe, 50)
            yield their_ms
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
