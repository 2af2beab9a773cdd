"""What may stand in front of the simulated upstreams: compression and TLS, met by Lookout's own sources."""

import gzip
import re
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from lookout.cli import main
from lookout.core.model import Blocks, Failed
from lookout.demo.sim.server import UpstreamFront, load_or_make
from tests.commands import LOOKOUT, TIME_S, lookout
from tests.integration.fast import a_config
from tests.integration.sim_client import simulation

GZIP = {"Accept-Encoding": "gzip"}


async def test_what_a_client_accepts_compressed_it_gets_compressed() -> None:
    async with (
        simulation(front=UpstreamFront(compresses=True)) as client,
        aiohttp.ClientSession(auto_decompress=False) as session,
    ):
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


@pytest.mark.clause("M9")
async def test_a_probe_reads_a_compressed_answer() -> None:
    async with simulation(front=UpstreamFront(compresses=True)) as client:
        assert await client.probe("squid/1") == Blocks(await client.height("1/a") - 5)


async def test_a_certificate_is_made_once_and_trusted_where_it_is_given(tmp_path: Path) -> None:
    folder = tmp_path / "made" / "here"
    tls = load_or_make(folder, "localhost")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    made = certificate.read_bytes()
    assert key.stat().st_mode & 0o077 == 0
    load_or_make(folder, "localhost")
    assert certificate.read_bytes() == made
    async with simulation(front=UpstreamFront(tls=tls)) as client:
        port = client.url("").port
        trusting = ssl.create_default_context(cafile=certificate)
        trusting.verify_flags |= ssl.VERIFY_X509_STRICT
        for host in ("127.0.0.1", "localhost"):
            async with client.session.get(f"https://{host}:{port}/json/1", ssl=trusting) as response:
                assert response.status == 200


@pytest.mark.clause("M3")
async def test_an_untrusted_certificate_is_a_failed_probe(tmp_path: Path) -> None:
    async with simulation(front=UpstreamFront(tls=load_or_make(tmp_path, "127.0.0.1"))) as client:
        assert await client.probe("squid/1") == Failed("tls: self-signed")


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
        assert "no secure connection (self-signed)" in mistrusting.stdout


def test_a_certificate_that_cannot_be_used_is_named_and_not_made(tmp_path: Path) -> None:
    load_or_make(tmp_path / "tls", "localhost")
    (tmp_path / "tls" / "cert.pem").unlink()
    left = sorted(tmp_path.rglob("*"))
    with chdir(tmp_path):  # where nobody can listen: what is not refused for its certificate ends for that
        refused = CliRunner().invoke(main, ["sim", "--listen", "192.0.2.1:1", "--tls", "tls"])
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr == "lookout: --tls: tls: No such file or directory\n"
    assert sorted(tmp_path.rglob("*")) == left
