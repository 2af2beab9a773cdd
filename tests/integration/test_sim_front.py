"""What may stand in front of the simulated upstreams: compression and TLS, met by Lookout's own sources."""

import asyncio
import gzip
import re
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
from cryptography.hazmat.primitives import serialization

from lookout.core.model import Blocks
from lookout.demo.sim.certificate import load_or_make
from lookout.demo.sim.front import Front
from lookout.demo.sim.server import serving
from lookout.demo.sim.upstreams import launch_world
from lookout.protocols import squid
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import fetch, open_session
from tests.builders import NOON
from tests.commands import LOOKOUT, TIME_S, lookout
from tests.integration.fast import a_config
from tests.integration.sim_client import Client, Clock, simulate, simulated

GZIP = {"Accept-Encoding": "gzip"}
REQUEST = "/squid/1/graphql"


@simulated(front=Front(compresses=True))
async def test_what_a_client_accepts_compressed_it_gets_compressed(client: Client) -> None:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        for path in ("/json/1", "/ponder/status", "/ppoi/node-status-v2", "/waku/store/v3/messages"):
            async with session.get(client.url(path), headers=GZIP) as response:
                assert response.headers["Content-Encoding"] == "gzip"
                body = gzip.decompress(await response.read())
            async with session.get(client.url(path), headers={"Accept-Encoding": "identity"}) as response:
                assert "Content-Encoding" not in response.headers
                assert await response.read() == body
        await client.order("json/1", "status", code=503)
        async with session.get(client.url("/json/1"), headers=GZIP) as response:
            assert (response.status, "Content-Encoding" in response.headers) == (503, False)
        await client.order("json/1", "refuse")
        with pytest.raises(aiohttp.ClientConnectionError):
            await session.get(client.url("/json/1"), headers=GZIP)


@simulated()
async def test_nothing_is_compressed_unless_it_was_asked_for(client: Client) -> None:
    async with client.session.get(client.url("/json/1"), headers=GZIP) as response:
        assert "Content-Encoding" not in response.headers


@pytest.mark.clause("M9")
@simulated(front=Front(compresses=True))
async def test_a_probe_reads_a_compressed_answer(client: Client) -> None:
    async with client.session.post(client.url(REQUEST), data=squid.QUERY, headers=GZIP) as response:
        assert response.headers["Content-Encoding"] == "gzip"
    async with open_session(5) as session:
        body = await fetch(session, Request("POST", client.base + REQUEST, body=squid.QUERY))
    assert squid.parse_status(body) == Blocks(await client.squid("squid/1"))


def test_a_certificate_is_made_once_and_trusted_where_it_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    tls = load_or_make(folder, "localhost")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = certificate.read_bytes()
    assert key.stat().st_mode & 0o077 == 0
    load_or_make(folder, "localhost")
    assert certificate.read_bytes() == made

    async def scene(client: Client) -> None:
        port = client.url("").port
        trusting = ssl.create_default_context(cafile=certificate)
        trusting.verify_flags |= ssl.VERIFY_X509_STRICT
        for host in ("127.0.0.1", "localhost"):
            async with client.session.get(f"https://{host}:{port}/json/1", ssl=trusting) as response:
                assert response.status == 200

    simulate(scene, front=Front(tls=tls))


@pytest.mark.clause("M3")
def test_an_untrusted_certificate_is_a_failed_probe(tmp_path: Path) -> None:
    async def ask() -> None:
        front = Front(tls=load_or_make(tmp_path, "127.0.0.1"))
        async with (
            serving("127.0.0.1", 0, launch_world(None, NOON), Clock().now, front) as (host, port),
            open_session(5) as session,
        ):
            await fetch(session, Request("POST", f"https://{host}:{port}{REQUEST}", body=squid.QUERY))

    with pytest.raises(ProbeFailed, match=r"^TLS"):
        asyncio.run(ask())


@contextmanager
def a_simulation(folder: Path, *options: str) -> Iterator[str]:
    """``lookout sim`` meanwhile; gives its address."""
    with subprocess.Popen(
        [LOOKOUT, "sim", "--listen", "127.0.0.1:0", *options], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            where = re.match(r"simulated upstreams on (https?://127\.0\.0\.1:[1-9][0-9]*)/ ", process.stdout.readline())
            assert where is not None
            yield where[1]
        finally:
            process.terminate()
        assert process.wait(TIME_S) == 0


@pytest.mark.clause("M9")
def test_every_source_works_through_tls_and_compression_if_it_trusts_the_certificate(tmp_path: Path) -> None:
    with a_simulation(tmp_path, "--tls", "tls", "--gzip") as base:
        assert base.startswith("https://")
        (tmp_path / "lookout.toml").write_text(a_config(base, probe_timeout_s=10))
        trusting = lookout(tmp_path, "probe", "-c", "lookout.toml", environment={"SSL_CERT_FILE": "tls/cert.pem"})
        assert trusting.returncode == 0, trusting.stdout
        mistrusting = lookout(tmp_path, "probe", "-c", "lookout.toml")
        assert mistrusting.returncode == 1
        assert "TLS" in mistrusting.stdout


@pytest.mark.parametrize("missing", ["cert.pem", "key.pem"])
def test_the_half_of_a_certificate_that_is_missing_is_named_and_not_made(missing: str, tmp_path: Path) -> None:
    load_or_make(tmp_path / "tls", "localhost")
    (tmp_path / "tls" / missing).unlink()
    refused = lookout(tmp_path, "sim", "--listen", "127.0.0.1:0", "--tls", "tls")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"lookout: --tls: tls/{missing}: No such file or directory\n"
    assert not (tmp_path / "tls" / missing).exists()


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_passphrase(tmp_path: Path) -> None:
    load_or_make(tmp_path / "tls", "localhost")
    file = tmp_path / "tls" / "key.pem"
    key = serialization.load_pem_private_key(file.read_bytes(), None)
    encryption = serialization.BestAvailableEncryption(b"hunter2")
    file.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption))
    refused = lookout(tmp_path, "sim", "--listen", "127.0.0.1:0", "--tls", "tls")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "lookout: --tls: tls/key.pem: is encrypted; name a key that needs no passphrase\n"


def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).write_text("none")
    refused = lookout(tmp_path, "sim", "--listen", "127.0.0.1:0", "--tls", ".")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("lookout: --tls: .: ")
    assert len(refused.stderr.splitlines()) == 1
