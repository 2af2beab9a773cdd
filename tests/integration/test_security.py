"""Who may read the files that Lookout makes, and whom it asks: the real commands, on a hostile machine and network."""

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from lookout.store.protocol import StoreError
from lookout.store.sqlite import open_writer
from tests.commands import a_command, lookout
from tests.integration.fast import a_world
from tests.integration.planted import a_listener
from tests.integration.served import HISTORY, LIVE
from tests.integration.whole_service import a_service, answer
from tests.wait import until_async

OWNERS_ALONE = 0o600
NOTHING: dict[str, bytes] = {}


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@contextmanager
def laxest_umask() -> Iterator[None]:
    """Whatever asks for more rights than it should gets them."""
    before = os.umask(0)
    try:
        yield
    finally:
        os.umask(before)


async def test_every_file_that_a_running_service_makes_is_its_owners_alone(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        service = a_service(tmp_path, world.base)
        config = tmp_path / "lookout.toml"
        config.write_text(config.read_text() + '[monitor]\nrecord = "seen.jsonl"\n')
        brought = {"lookout.toml", "said.log"}
        with laxest_umask(), a_command(tmp_path, "run", "-c", "lookout.toml"):

            async def both_answer() -> bool:
                return all([await answer(world.http, service.base + path) for path in (LIVE, HISTORY)])

            await until_async(both_answer, "both endpoints answer", 60)
            made = {name: mode for name, mode in modes(tmp_path).items() if name not in brought}
    expected = {f"lookout.db{ending}" for ending in ("", "-lock", "-shm", "-wal")} | {"seen.jsonl"}
    assert made == dict.fromkeys(expected, OWNERS_ALONE)


@pytest.mark.parametrize("there_before", [False, True], ids=["a new store", "a store"])
@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_link_that_somebody_put_beside_the_store_leads_nowhere(
    ending: str, there_before: bool, tmp_path: Path
) -> None:
    path, victim = tmp_path / "lookout.db", tmp_path / "victim"
    if there_before:
        open_writer(path).close()
    victim.write_text("not to be touched")
    linked = tmp_path / f"lookout.db{ending}"
    linked.unlink(missing_ok=True)
    linked.symlink_to(victim)
    with suppress(StoreError), closing(open_writer(path)) as writer:  # SQLite replaces some links, and refuses others
        writer.write({}, NOTHING)
    assert victim.read_text() == "not to be touched"


def probe(folder: Path, *urls: str, **environment: str) -> str:
    """What ``lookout probe`` shows of RPC endpoints at these addresses."""
    rpc = json.dumps(urls)
    (folder / "lookout.toml").write_text(f'[[chains]]\nid = 1\nname = "x"\nblock_time_s = 12\nrpc = {rpc}\n')
    outcome = lookout(
        folder, "probe", "-c", "lookout.toml", environment={"COLUMNS": "200", **environment}, within_s=120
    )
    assert outcome.stderr == ""
    return outcome.stdout


def answered(table: str) -> list[str]:
    """Why each endpoint failed, from the first to the last."""
    return re.findall(r"^  rpc \d+ of x +(.+?) +\d+ ms$", table, re.MULTILINE)


def http(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = (b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), b"Connection: close", *headers, b"", body)
    return b"\r\n".join(lines)


def test_nobody_but_the_configured_address_is_asked_whatever_it_and_the_environment_say(tmp_path: Path) -> None:
    """Neither a proxy of the environment, nor a redirect's target; and no password of a .netrc is told to anybody."""
    strangers: list[bytes] = []
    asked: list[bytes] = []

    def strange(raw: bytes) -> bytes:
        strangers.append(raw)
        return http(b"{}")

    with a_listener(strange) as stranger:

        def redirect(raw: bytes) -> bytes:
            asked.append(raw)
            return http(b"", b"Location: " + stranger.encode(), b"Set-Cookie: a=b", status=b"307 Elsewhere")

        with a_listener(redirect) as upstream:
            (tmp_path / ".netrc").write_text("default login me password swordfish\n")
            (tmp_path / ".netrc").chmod(OWNERS_ALONE)
            proxies = {f"{scheme}_proxy": stranger for scheme in ("http", "https", "all", "ws", "wss")}
            proxies |= {name.upper(): address for name, address in proxies.items()}
            home = {"HOME": str(tmp_path), "NETRC": str(tmp_path / ".netrc"), "NO_PROXY": "", "no_proxy": ""}
            told = probe(tmp_path, upstream, **proxies, **home)
    assert answered(told) == ["redirect: no usable answer: it redirects, which is not followed (307)"]
    assert asked
    assert not any(b"authorization" in raw.lower() for raw in asked)
    assert strangers == []
