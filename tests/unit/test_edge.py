"""The configuration of Varnish: settings in, text out."""

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from lookout.cli import main
from lookout.config.settings import Settings
from lookout.config.tables import EdgeTable, ServerTable
from lookout.edge.varnish import configuration, origin_of, parameters
from tests.integration.edged import VARNISHD, needs_varnish


def test_the_origin_and_the_paths_are_those_of_the_settings() -> None:
    vcl = configuration(Settings(protocol="rail-gun.v2~x", edge=EdgeTable(origin="lookout.internal:8081")))
    assert '.host = "lookout.internal";' in vcl
    assert '.port = "8081";' in vcl
    assert '"/api/v1/rail-gun.v2~x/liveness"' in vcl
    assert '"/api/v1/rail-gun.v2~x/liveness/history"' in vcl
    assert "@" not in vcl


@pytest.mark.parametrize(
    ("listen", "origin", "asked"),
    [
        pytest.param("127.0.0.1:8080", "", "127.0.0.1:8080", id="where the server listens"),
        pytest.param("0.0.0.0:81", "", "127.0.0.1:81", id="all IPv4 addresses are asked at the loopback"),
        pytest.param("[::]:81", "", "[::1]:81", id="all addresses are asked at the loopback"),
        pytest.param("localhost:81", "", "localhost:81", id="a name is asked as it is"),
        pytest.param("127.0.0.1:81", "10.0.0.5:82", "10.0.0.5:82", id="an origin that is set wins"),
    ],
)
def test_the_edge_asks_the_server_of_its_settings_unless_another_is_named(listen: str, origin: str, asked: str) -> None:
    assert origin_of(Settings(server=ServerTable(listen=listen), edge=EdgeTable(origin=origin))) == asked


NOBODY = "no server answers at port 0; set edge.origin to the HOST:PORT of the server"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('[server]\nlisten = "0.0.0.0:0"\n', f"server.listen: {NOBODY}\n"),
        ('[edge]\norigin = "10.0.0.5:00"\n', f"edge.origin: {NOBODY}\n"),
        ('[edge]\norigin = "nowhere"\n', "edge.origin: has to be HOST:PORT"),
    ],
)
def test_the_command_refuses_an_origin_that_cannot_be_asked(tmp_path: Path, config: str, said: str) -> None:
    file = tmp_path / "lookout.toml"
    file.write_text(config)
    answer = CliRunner().invoke(main, ["edge-config", "-c", str(file)])
    assert answer.exit_code == 2
    assert answer.output.startswith(f"lookout: {file}: {said}")


@pytest.mark.clause("E1", "A1")
def test_a_segment_is_compared_as_text_and_not_as_a_pattern() -> None:
    vcl = configuration(Settings(protocol="a.b"))
    assert not re.search(r'~ "[^"]*a\.b', vcl)


@pytest.mark.clause("E2")
@pytest.mark.parametrize("limit", [1, 11, 12, 13, 120, 121, 1000, 2**53 - 1])
def test_the_buckets_of_a_minute_hold_the_limit_between_them(limit: int) -> None:
    vcl = configuration(Settings(server=ServerTable(rate_limit_per_minute=limit)))
    buckets = re.findall(r'is_denied\("\d+ " \+ req.http.X-Edge-Minute, (\d+), (\d+)s\)', vcl)
    assert sum(int(size) for size, _ in buckets) == min(limit, 10**9)
    assert len(buckets) <= 12
    # None regains a token within the minute.
    assert all(60 / int(period_s) * int(size) < 1 for size, period_s in buckets)


@pytest.mark.clause("E6")
def test_nobody_is_believed_unless_the_settings_name_them() -> None:
    assert "acl" not in configuration(Settings())
    proxies = ("10.0.0.0/8", "192.0.2.7", "2001:db8::/32")
    vcl = configuration(Settings(server=ServerTable(trusted_proxies=proxies)))
    assert '"10.0.0.0"/8;\n    "192.0.2.7"/32;\n    "2001:db8::"/32;' in vcl


@pytest.mark.clause("A14", "A16")
def test_the_command_prints_what_varnishd_needs_with_it(tmp_path: Path) -> None:
    file = tmp_path / "lookout.toml"
    file.write_text("")
    answer = CliRunner().invoke(main, ["edge-config", "--parameters", "-c", str(file)])
    assert answer.output.split() == parameters()
    assert {"send_timeout=30", "idle_send_timeout=30", "timeout_idle=30", "http_gzip_support=off"} < set(parameters())
    assert any(word.startswith("vsl_mask=") and "-ReqStart" in word for word in parameters())


@needs_varnish
@pytest.mark.clause("E5")
@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(Settings(), id="the launch's"),
        pytest.param(
            Settings(
                protocol="a.b_c~d-e",
                server=ServerTable(
                    rate_limit_per_minute=2**53 - 1,
                    ban_s=0.001,
                    trusted_proxies=("0.0.0.0/0", "::/0", "::1", "10.0.0.0/8"),
                ),
                edge=EdgeTable(origin="[::1]:1"),
            ),
            id="extremes",
        ),
    ],
)
def test_varnish_understands_it(tmp_path: Path, settings: Settings) -> None:
    file = tmp_path / "edge.vcl"
    file.write_text(configuration(settings))
    compiled = subprocess.run(
        [VARNISHD, "-j", "none", "-n", tmp_path / "varnish", "-C", "-f", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert compiled.returncode == 0, compiled.stderr
