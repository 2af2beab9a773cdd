"""Every protocol that is chosen by ``kind`` keeps to the rules of all; and the kit notices one that does not."""

from typing import Any

import pytest
from msgspec.structs import replace

from lookout.core.model import Blocks, Found
from lookout.protocols.conformance import list_faults
from lookout.protocols.json_pointer import JsonTable
from lookout.protocols.ponder import PONDER
from lookout.protocols.protocol import Protocol
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.subgraph import SubgraphTable
from lookout.protocols.tables import KindTable
from tests.contract.protocols.recorded import recorded

URL = "http://127.0.0.1/?key=hunter2"
CASES: list[tuple[KindTable, str]] = [
    (KindTable(1, "squid", URL, 5), "squid-status.json"),
    (SubgraphTable(1, "subgraph", URL, 5), "subgraph-meta.json"),
    (SubgraphTable(1, "subgraph", URL, 5, deployment="Qm1"), "subgraph-indexing-status.json"),
    (KindTable(1, "ponder", URL, 5), "ponder-status.json"),
    (JsonTable(1, "json", URL, 5, pointer="/mainnet/block/number"), "ponder-status.json"),
]


def test_every_kind_has_a_case() -> None:
    kinds = {each.name for each in PROTOCOLS if isinstance(each, Protocol)}
    assert {settings.kind for settings, _ in CASES} == kinds


@pytest.mark.clause("M9", "R10")
@pytest.mark.parametrize(("settings", "recording"), CASES)
def test_a_kind_conforms(settings: KindTable, recording: str) -> None:
    protocol = PROTOCOLS[settings.kind]
    assert isinstance(protocol, Protocol)
    assert list(list_faults(protocol, settings, recorded(recording))) == []


def careless(body: bytes, _: Any) -> Found:
    return Blocks(int(body[-3:-2]) - 2)


@pytest.mark.parametrize(
    ("parse", "words"),
    [
        pytest.param(careless, "gives ValueError", id="one that dies of what it cannot read"),
        pytest.param(careless, "gives Blocks(position=-", id="one that lets any number through"),
        pytest.param(lambda *_: Blocks(1), "is taken for an answer", id="one that never reads"),
        pytest.param(PONDER.parse, "not understood as Blocks", id="one that does not understand a real answer"),
    ],
)
def test_the_kit_notices(parse: Any, words: str) -> None:
    protocol = Protocol("careless", Blocks, KindTable, PONDER.request, parse)
    settings = replace(CASES[0][0], chain=2)
    assert any(
        words in fault for fault in list_faults(protocol, settings, b'{"mainnet":{"id":1,"block":{"number":1}}}')
    )
