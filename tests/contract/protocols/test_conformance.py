"""Every protocol that is chosen by ``kind`` passes the conformance kit, as those of other packages have to."""

from typing import Any, Final

import pytest

from lookout.core.model import Blocks, Found
from lookout.protocols.conformance import assert_conforms
from lookout.protocols.protocol import Protocol
from lookout.protocols.registry import PROTOCOLS
from tests.contract.protocols.recorded import recorded

URL: Final = {"url": "https://upstream.example/v1?key=1"}
# Where it is, its settings, the recorded answer, and what is in it.
BUILT_IN: Final[dict[str, tuple[str, dict[str, Any], str, Found]]] = {
    "squid": ("lookout.protocols.squid:SQUID", URL, "squid-status.json", Blocks(56)),
    "subgraph": ("lookout.protocols.subgraph:SUBGRAPH", URL, "subgraph-meta.json", Blocks(19_000_000)),
    "subgraph, an index node": (
        "lookout.protocols.subgraph:SUBGRAPH",
        {**URL, "deployment": "Qm1"},
        "subgraph-indexing-status.json",
        Blocks(19_000_001),
    ),
    "ponder": ("lookout.protocols.ponder:PONDER", {**URL, "chain": 1}, "ponder-status.json", Blocks(19_000_002)),
    "json": (
        "lookout.protocols.json_pointer:JSON",
        {**URL, "pointer": "/mainnet/block/number"},
        "ponder-status.json",
        Blocks(19_000_002),
    ),
}


@pytest.mark.clause("M9", "R10")
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_built_in_protocol_conforms(name: str) -> None:
    place, settings, file, found = BUILT_IN[name]
    assert_conforms(place, settings, good={recorded(file): found})


def test_every_kind_is_tried() -> None:
    kinds = {each.name for each in PROTOCOLS if isinstance(each, Protocol)}
    assert {name.partition(",")[0] for name in BUILT_IN} == kinds
