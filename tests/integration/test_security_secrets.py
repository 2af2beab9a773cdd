"""A secret of the configuration or the environment is in nothing that the real commands print, serve, store or show.

The upstreams are hostile: whatever they were told, they say back, in every part of an answer.
"""

import base64
import itertools
import os
import shutil
import subprocess
from contextlib import chdir, suppress
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner, Result

from lookout.cli import main
from lookout.store.sqlite import read_snapshot
from tests.cases import cases
from tests.commands import LOOKOUT, a_command, living, meanwhile, said
from tests.integration.fast import POLICY
from tests.integration.planted import a_listener
from tests.integration.served import HISTORY, LIVE, a_free_port
from tests.integration.whole_service import answer
from tests.stores import read_texts
from tests.wait import until, until_async

# One for each place, so that a leak tells where it came from; the last is in the environment and asked for by nobody.
CANARY = "canary"
PLACES = ("user", "password", "path", "query", "header", "rpc", "proxy", "unused")
VARIABLES = {f"LOOKOUT_TEST_{place.upper()}": f"{CANARY}-{place}-5q7" for place in PLACES}


def fills(place: str) -> str:
    return f"${{LOOKOUT_TEST_{place.upper()}}}"


def a_config(upstream: str, ports: list[int]) -> str:
    """Every kind of source, with secrets wherever one can be; half of them written out, half from the environment."""
    address = upstream.replace("://", f"://{fills('user')}:{CANARY}-written@")
    url = f"{address}/v3/{fills('path')}?key={fills('query')}&other={CANARY}-written"
    headers = f'headers = {{Authorization = "Bearer {fills("header")}", X-Api-Key = "{CANARY}-written"}}\n'
    # The upstream is its own proxy: it hears what is sent to one, and says that back, too.
    own = upstream.replace("://", f"://{CANARY}-written:{fills('proxy')}@")
    proxy = f'proxy = "{own}"\n'
    through = f'{{url = "{upstream}/{CANARY}-proxied", name = "own node", {headers.strip()}, {proxy.strip()}}}'
    tunnelled = f'{{url = "https://{CANARY}-tunnelled.invalid/", {headers.strip()}, {proxy.strip()}}}'
    rpc = f'"{url}", "{upstream}/v3/{fills("rpc")}", "{upstream}/{CANARY}-written", {through}, {tunnelled}'
    text = '[store]\nurl = "sqlite:lookout.db"\n[log]\nlevel = "debug"\nformat = "json"\n'
    text += f'[server]\nlisten = "127.0.0.1:{ports[0]}"\n'
    text += f'[admin]\nmonitor = "127.0.0.1:{ports[1]}"\nserver = "127.0.0.1:{ports[2]}"\n'
    text += '[monitor]\nrecord = "seen.jsonl"\n'
    for chain_id, kind in ((1, "squid"), (137, "subgraph"), (56, "ponder"), (42161, "json")):
        text += f'[[chains]]\nid = {chain_id}\nname = "c{chain_id}"\nblock_time_s = 12\nrpc = [{rpc}]\n'
        for service in ("indexer", "hosted-indexer"):
            text += f'[[{service}]]\nchain = {chain_id}\nkind = "{kind}"\nurl = "{url}"\nconfirmations = 5\n{headers}'
            text += 'pointer = "/block"\n' if kind == "json" else ""
            text += proxy if service == "indexer" else ""
            text += 'deployment = "Qm"\n' if kind == "subgraph" and service == "indexer" else ""
    text += f'[ppoi]\nurl = "{url}"\nrequired_list = "x"\nchains = [1, 137]\n{headers}'
    text += (
        f'[messaging]\nurl = "{url}"\n{headers}[broadcasters]\nurl = "{url}"\nvia = "relay"\nchains = [1]\n{headers}'
    )
    return text + "[policy]\n" + "".join(f"{key} = {value}\n" for key, value in POLICY.items())


class Echo:
    """Answers a request with itself, each time in another part of an answer."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._turns = itertools.count()

    def __call__(self, raw: bytes) -> bytes:
        self.heard.append(raw)
        said = raw.decode("latin-1").replace("\r\n", " ").replace('"', "'")
        bodies = (
            f'{{"jsonrpc":"2.0","id":1,"error":{{"code":-32005,"message":"{said}"}}}}',
            f'{{"errors":[{{"message":"{said}"}}]}}',
            f'{{"jsonrpc":"2.0","id":1,"result":"{said}"}}',
            f'{{"data":{{"{said}":"{said}"}},"{said}":{{"block":"{said}"}},"block":"{said}"}}',
            f'["{said}"]',
            said,
        )
        turn = next(self._turns)
        body = bodies[turn % len(bodies)]
        heads = (
            "HTTP/1.1 200 OK",
            f"HTTP/1.1 401 {said}",
            f"HTTP/1.1 302 Found\r\nLocation: /{said}",
            f"HTTP/1.1 200 OK\r\nX-You-Said: {said}",
            f"HTTP/1.1 {said}",
            f"HTTP/1.1 200 OK\r\n{said}",
            f"HTTP/1.1 200 OK\r\nContent-Encoding: {said}",
            f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nSet-Cookie: a={said}",
            f"HTTP/1.1 200 OK\r\nTransfer-Encoding: {said}",
            f"{said}",
        )
        head = heads[turn // len(bodies) % len(heads)]
        return f"{head}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode("latin-1")


def check_silent(told: str) -> None:
    for secret in (CANARY, base64.b64encode(CANARY.encode()).decode()[:8]):  # as it is, and as Basic has it
        assert secret not in told, told[max(0, told.index(secret) - 200) :][:500]


def all_stored(folder: Path) -> str:
    """Every file but the configuration, and what is compressed in the store."""
    files = (file for file in folder.iterdir() if file.suffix != ".toml")
    texts = read_texts(read_snapshot(folder / "lookout.db").state) if (folder / "lookout.db").exists() else []
    return "".join((*(f"{file.name}: {file.read_bytes().decode('latin-1')}\n" for file in files), *texts))


def shown_by_the_system(group: int) -> str:
    """What anybody on the machine can see of the processes: how they were called, and what they are named."""
    shown = ""
    for pid, command_line in living(group).items():
        shown += f"{command_line}\n"
        with suppress(OSError):  # it ended meanwhile
            shown += Path(f"/proc/{pid}/comm").read_text()
            shown += "".join(task.joinpath("comm").read_text() for task in Path(f"/proc/{pid}/task").iterdir())
    return shown


def held_by_servers(group: int) -> str:
    """The environment of the process that serves, which every process of its user may be able to read."""
    (server,) = (pid for pid, command_line in living(group).items() if " serve " in command_line)
    return Path(f"/proc/{server}/environ").read_text()


def an_ordinary(*program: str | Path) -> tuple[str | Path, ...]:
    """A program without the capabilities of root, one of which is to look into every process."""
    return ("setpriv", "--bounding-set=-all", *program) if os.geteuid() == 0 else program


def can_be_read(pid: int, name: str) -> bool:
    """Whether another process of the same user may look there."""
    read = subprocess.run(
        an_ordinary("dd", f"if=/proc/{pid}/{name}", "of=/dev/null", "count=0"), capture_output=True, check=False
    )
    return read.returncode == 0


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv, of util-linux")
def test_a_server_that_is_taken_over_cannot_look_into_the_monitor(tmp_path: Path) -> None:
    with a_listener(lambda _: b"") as upstream:
        (tmp_path / "lookout.toml").write_text(a_config(upstream, [a_free_port() for _ in range(3)]))
        with (
            meanwhile(tmp_path, *an_ordinary(LOOKOUT, "run", "-c", "lookout.toml"), **VARIABLES) as running,
            meanwhile(tmp_path, *an_ordinary("sleep", "600")) as other,
        ):
            until(lambda: '"serving"' in said(tmp_path), "it runs, and its server too")
            assert not any(can_be_read(running.pid, name) for name in ("environ", "mem"))
            assert all(can_be_read(other.pid, name) for name in ("environ", "mem"))
            assert running.poll() is None  # it was there to be read


async def served(http: aiohttp.ClientSession, base: str, *paths: str) -> str:
    told = ""
    for method, path in itertools.product(("GET", "OPTIONS", "POST"), paths):
        async with http.request(method, base + path) as got:
            told += f"{got.status} {got.reason} {got.headers} {(await got.read()).decode('latin-1')}\n"
    return told


async def test_a_service_on_upstreams_that_repeat_what_they_hear_tells_no_secret(tmp_path: Path) -> None:
    echo = Echo()
    ports = [a_free_port() for _ in range(3)]
    public, *admin = [f"http://127.0.0.1:{port}" for port in ports]
    with a_listener(echo) as upstream:
        (tmp_path / "lookout.toml").write_text(a_config(upstream, ports=ports))
        with a_command(tmp_path, "run", "-c", "lookout.toml", **VARIABLES) as process:
            async with aiohttp.ClientSession() as http:

                async def is_all_answered() -> bool:
                    assert process.poll() is None, said(tmp_path)
                    both = [await answer(http, public + path) for path in (LIVE, HISTORY)]
                    return all(both) and len(echo.heard) > 200  # each answer to several sources

                await until_async(is_all_answered, "everything was answered in every way", 80)
                shown = await served(
                    http, public, "/", LIVE, HISTORY, "/openapi.json", "/schemas/liveness.json", "/none"
                )
                for base in admin:
                    by_admin = await served(http, base, "/metrics", "/sources", "/healthz", "/readyz?maxAge=1", "/none")
                    assert upstream.removeprefix("http://") not in by_admin
                    shown += by_admin
            shown += shown_by_the_system(process.pid) + held_by_servers(process.pid) + all_stored(tmp_path)
        shown += all_stored(tmp_path)
    assert "an endpoint fails" in said(tmp_path)  # the log of every detail was on
    assert "Traceback" not in said(tmp_path)
    assert "PATH=" in shown
    assert " lookout serve --beside-monitor" in shown
    assert "not_understood" in (tmp_path / "seen.jsonl").read_text()
    check_silent(shown)
    for place in (*VARIABLES.values(), f"{CANARY}-written"):  # all but the unused one, and names in Basic
        if not place.startswith(tuple(f"{CANARY}-{each}" for each in ("unused", "user", "password", "proxy"))):
            assert any(place.encode() in raw for raw in echo.heard), place
    assert {b"CONNECT", b"POST http"} <= {
        raw[: raw.index(b"://")] if b"://" in raw[:20] else raw[:7] for raw in echo.heard
    }
    assert all(
        b"Proxy-Authorization: Basic " in raw for raw in echo.heard if raw.startswith((b"CONNECT", b"POST http"))
    )


def command(folder: Path, *arguments: str) -> Result:
    with chdir(folder):
        environment = {**VARIABLES, "COLUMNS": "500"}
        return CliRunner().invoke(main, [*arguments, "-c", "lookout.toml"], env=environment)


def test_probe_and_check_config_tell_no_secret(tmp_path: Path) -> None:
    with a_listener(Echo()) as upstream:
        (tmp_path / "lookout.toml").write_text(a_config(upstream, ports=[1, 2, 3]))
        for _ in range(6):  # in each of the ways to answer
            probed = command(tmp_path, "probe")
            assert (probed.exit_code, probed.stderr) == (1, "")
            check_silent(probed.stdout)
    checked = command(tmp_path, "check-config")
    assert checked.stdout == "ok\n"
    check_silent(checked.stderr)
    check_silent(command(tmp_path, "edge-config").stdout)


@pytest.mark.parametrize(
    "text", cases("security_secrets", "what is wrong with a configuration is reported without a secret")
)
def test_what_is_wrong_with_a_configuration_is_reported_without_a_secret(text: str, tmp_path: Path) -> None:
    (tmp_path / "lookout.toml").write_text(text)
    outcome = command(tmp_path, "check-config")
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith("lookout: lookout.toml: ")
    check_silent(outcome.stdout + outcome.stderr)
