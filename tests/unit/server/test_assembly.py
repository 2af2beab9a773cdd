"""Each setting of a server, and what the store describes, reaches the part that it is for."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from lookout.config.tables import NamedChain, NamedService, PageTable, ServerSettings, ServerTable
from lookout.public.about import Description
from lookout.server.assembly import Machine, Server, build_server
from lookout.server.request import parse_head
from tests.builders import MINUTE, SECOND
from tests.integration.raw import a_request
from tests.unit.server.fakes import FakeReader, SetClock, a_connection

PROXY = "10.0.0.1"


def a_server(store: FakeReader, clock: SetClock, *, files: int = 1_000, **table: object) -> Server:
    settings = ServerSettings(
        protocol="other",
        server=ServerTable(**table),  # type: ignore[arg-type]
        chains=(NamedChain(id=7, name="Seven"),),
        services=(NamedService(name="relayer", title="Our relayer"),),
        page=PageTable(operator="Us", logo="png:cGljdHVyZQ=="),
    )
    machine = Machine(
        clock=clock, open_reader=lambda *_: store, count_acceptable_connections=lambda: files, stalled_s=2.0
    )
    return build_server(settings, Path(), machine)


@pytest.mark.clause("A16")
@pytest.mark.parametrize(
    ("files", "of_address", "limits"),
    [
        pytest.param(1_000, 20, (1_000, 20, 2.0), id="as configured"),
        pytest.param(30, 20, (30, 15, 2.0), id="at most half of them"),
        pytest.param(1, 20, (1, 1, 2.0), id="of a machine with a single one"),
        pytest.param(30, 0, (30, 0, 2.0), id="without a limit"),
    ],
)
def test_an_address_cannot_have_all_connections(files: int, of_address: int, limits: tuple[int, int, float]) -> None:
    assert a_server(FakeReader(), SetClock(), files=files, connections_per_address=of_address).limits[:3] == limits


@pytest.mark.clause("E2", "E6")
def test_a_ban_lasts_as_long_as_it_is_set_to_and_not_for_those_behind_a_proxy() -> None:
    clock = SetClock()
    server = a_server(FakeReader(), clock, rate_limit_per_minute=1, ban_s=300, trusted_proxies=(PROXY,))
    live = server.poller.site.paths[0]

    def ask(peer: str, *headers: str) -> bytes:
        return b"".join(
            server.responder.answer(parse_head(a_request("GET", live, *headers)), a_connection(server, peer))
        )

    assert [ask("1.1.1.1")[9:12] for _ in range(2)] == [b"503", b"429"]
    assert b"\r\nretry-after: 300\r\n" in ask("1.1.1.1")
    clock.elapsed += 300 * SECOND
    assert ask("1.1.1.1")[9:12] == b"503"
    assert [ask(PROXY, f"X-Forwarded-For: 2.2.2.{number}")[9:12] for number in range(3)] == [b"503"] * 3
    assert a_connection(server, PROXY).caller.is_trusted


def test_the_operators_picture_is_served_where_the_description_says() -> None:
    server = a_server(FakeReader(), SetClock())
    found = server.poller.resources["/assets/logo.png"].plain.found
    assert found.body == b"picture"
    assert ("content-type", "image/png") in found.headers
    assert b'"logo":"/assets/logo.png"' in server.poller.resources["/about.json"].plain.found.body


@pytest.mark.clause("A12")
def test_an_unreadable_history_is_served_as_long_as_is_set() -> None:
    clock, store = SetClock(), FakeReader()
    store.put("history", b"history")
    poller = a_server(store, clock, history_unreadable_s=60).poller
    poller.poll()
    codes = []
    for passed_ms in (0, MINUTE, 1):
        store.unreadable = {"history", "changed"}
        clock.elapsed += passed_ms
        poller.poll()
        poller.check_time()
        codes.append(poller.resources[poller.site.paths[1]].plain.found.http_code)
    assert codes == [200, 200, 503]


def test_it_is_described_by_its_settings_until_the_monitor_says_more() -> None:
    store = FakeReader()
    poller = a_server(store, SetClock()).poller

    def described() -> Description:
        return msgspec.json.decode(poller.resources["/about.json"].plain.found.body, type=Description)

    own = described()
    assert ([chain.name for chain in own.chains], own.services[-1].title, own.operator) == (
        ["Seven"],
        "Our relayer",
        "Us",
    )
    store.put("about", replace(own, chains=(), operator="Them").encode())
    poller.poll()
    poller.check_time()
    assert (described().chains, described().operator) == ((), "Us")
    assert b"/assets/" in poller.resources["/"].plain.found.body
