"""The monitor's admin port, scraped and asked over real sockets."""

import json
import resource
import signal
import socket
from pathlib import Path
from typing import Final

import pytest
from prometheus_client import CollectorRegistry

from lookout.base.admin_port import AdminRoutes
from tests.commands import TIME_S, a_command, said
from tests.integration.admin import admin_address, always, ask, open_port, received, with_admin
from tests.integration.fast import a_config, a_world
from tests.integration.metrics import scrape
from tests.integration.served import has_ipv6
from tests.integration.whole_service import answer
from tests.wait import until_async

# Of each endpoint: what it does, and its standing by that.
ENDPOINT_FAULTS: Final[dict[str, tuple[str, str, dict[str, int], str]]] = {
    "rpc 1 of c56": ("rpc/56/a", "lag", {"by": 4_000}, "behind"),
    "rpc 2 of c137": ("rpc/137/b", "lie", {"by": 9_000_000}, "disagrees"),
    "rpc 3 of c42161": ("rpc/42161/c", "wrong-chain", {}, "wrong_chain"),
    "rpc 1 of c1": ("rpc/1/a", "status", {}, "failed"),
}


@pytest.mark.clause("M16", "M8")
async def test_who_is_left_out_of_a_head_shows_at_sources_and_in_the_metrics(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        for target, fault, parameters, _ in ENDPOINT_FAULTS.values():
            await world.order(target, fault, **parameters)
        (tmp_path / "lookout.toml").write_text(with_admin(a_config(world.base)))
        with a_command(tmp_path, "monitor", "-c", "lookout.toml"):
            address = await admin_address(tmp_path)
            left_out = {name: standing for name, (*_, standing) in ENDPOINT_FAULTS.items()}

            async def all_were_compared() -> bool:
                shown = await answer(world.http, f"http://{address}/sources") or []
                endpoints = [each for each in shown if each["kind"] == "endpoint"]
                standings = {each["name"]: each.get("standing") for each in endpoints}
                return (
                    len(standings) == 15
                    and standings == dict.fromkeys(standings, "agrees") | left_out
                    and all("lagBlocks" in each for each in endpoints if each["outcome"] == "answered")
                )

            await until_async(all_were_compared, "every endpoint has its standing")
            samples = await scrape(world.http, address)
    standings = {key[2]: key[3] for key in samples if key[0] == "lookout_endpoint_standing"}
    assert standings == dict.fromkeys(standings, "agrees") | left_out
    assert samples["lookout_endpoint_lag_blocks", "56", "rpc 1 of c56"] > 3_000
    assert samples["lookout_endpoint_lag_blocks", "137", "rpc 2 of c137"] < -8_000_000
    assert samples["lookout_endpoint_reads_total", "1", "rpc 1 of c1", "failed"] >= 1
    assert samples["lookout_endpoint_reads_total", "1", "rpc 1 of c1", "answered"] == 0
    assert ("lookout_endpoint_height", "1", "rpc 1 of c1") not in samples
    assert samples["lookout_tasks",] > len(standings)  # each endpoint has one
    assert samples["lookout_chain_info", "56", "c56", "false"] == 1


async def test_a_full_disk_ends_nothing_and_is_not_ready_until_there_is_room_again(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        (tmp_path / "lookout.toml").write_text(with_admin(a_config(world.base)))
        with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:
            address = await admin_address(tmp_path)
            base = f"http://{address}"
            await world.until_healthy()

            async def answers(http_code: int) -> bool:
                async with world.http.get(f"{base}/readyz?maxAge=3") as answer:
                    document = await answer.json()
                    assert (answer.status == 200) is document["ready"] is (document["ageSeconds"] <= 3)
                    return answer.status == http_code

            await until_async(lambda: answers(200), "ready")
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (8_192, resource.RLIM_INFINITY))
            await until_async(lambda: "not stored" in said(tmp_path), "there is no room")
            await until_async(lambda: answers(503), "not ready")
            stuck_at = world.document()["generatedAt"]
            async with world.http.get(f"{base}/healthz") as answer:
                assert (answer.status, await answer.json()) == (200, {"status": "ok"})
            async with world.http.get(f"{base}/readyz") as answer:
                assert answer.status == 200
            assert (await scrape(world.http, address))["lookout_store_errors_total",] > 0
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            await until_async(lambda: answers(200), "ready again")
            await world.until(lambda: world.document()["generatedAt"] > stuck_at, "stored again")
            await world.until_healthy()
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIME_S) == 0
    output = said(tmp_path)
    assert output.count("not stored; trying again with every publication") == 1
    assert "stored again" in output
    assert "Traceback" not in output


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_it_listens_on_a_free_port_of_either_family_and_not_for_longer(host: str) -> None:
    if host == "[::1]" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with open_port(f"{host}:0", AdminRoutes(CollectorRegistry(), always)) as address:
        assert not address.endswith(":0")
        assert ask(address, "GET", "/healthz")[::2] == (200, b'{"status":"ok"}')
    with pytest.raises(ConnectionRefusedError):
        ask(address, "GET", "/healthz")


def test_get_and_head_alone_are_answered_and_no_request_is_logged(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with open_port("127.0.0.1:0", AdminRoutes(CollectorRegistry(), always)) as address:
        capfd.readouterr()
        host, _, number = address.rpartition(":")
        with socket.create_connection((host, int(number))) as silent:  # keeps nobody else waiting
            got = ask(address, "GET", "/readyz?maxAge=1")
            head = ask(address, "HEAD", "/readyz?maxAge=1")
            assert got[0] == head[0] == 200
            assert got[1] == head[1]
            assert got[1]["Content-Length"] == str(len(got[2]))
            assert head[2] == b""
            for method in ("POST", "PUT", "DELETE", "OPTIONS", "BREW"):
                http_code, headers, body = ask(address, method, "/metrics")
                assert (http_code, headers["Allow"], headers["Cache-Control"]) == (405, "GET, HEAD", "no-store")
                assert json.loads(body) == {"error": "/metrics takes GET and HEAD"}
                assert ask(address, method, "/metric")[0] == 404
            silent.sendall(b"GET /healthz nonsense\r\n\r\n")
            assert b'{"error":' in received(silent)
            with socket.create_connection((host, int(number))) as gone:
                gone.sendall(b"GET /metr")
    assert capfd.readouterr() == ("", "")
