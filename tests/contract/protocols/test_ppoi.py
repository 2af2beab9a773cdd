"""What a ppoi node's status says of each chain."""

from typing import Any

import msgspec
import pytest

from lookout.core.model import Check, Failed, Found, Indexes, MissingList, Nothing
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.ppoi import NETWORKS, PpoiTable, parse_node_status, ppoi_source
from tests.contract.protocols.recorded import REQUIRED_LIST, recorded

FINE = {"currentTxidIndex": 42, "validatedTxidIndex": 41}
CARRIED: dict[str, Any] = {REQUIRED_LIST: {}}
OTHER_LIST: dict[str, Any] = {"00": {}}


def status(network: Any, list_keys: Any = (REQUIRED_LIST,)) -> bytes:
    found = {"forNetwork": {"Ethereum": network}, "listKeys": list_keys}
    return msgspec.json.encode({"jsonrpc": "2.0", "result": found, "id": 1})


def found_on_ethereum(body: bytes) -> Found:
    return parse_node_status(body, {1: "Ethereum"}, REQUIRED_LIST)[1]


@pytest.mark.clause("M9", "S12", "S13")
def test_a_recorded_status_answers_for_every_chain_in_its_own_way() -> None:
    assert parse_node_status(recorded("ppoi-node-status.json"), NETWORKS, REQUIRED_LIST) == {
        1: Indexes(1230, 1234),
        56: Nothing(),  # the validated index is absent
        137: MissingList(),
        42161: Nothing(),  # both indexes are absent
        11155111: Nothing(),  # the network is absent
    }


STATUSES = {
    "both indexes and the list are there": (status({"txidStatus": FINE, "listStatuses": CARRIED}), Indexes(41, 42)),
    "the list is not among the node's keys": (status({"txidStatus": FINE, "listStatuses": CARRIED}, []), MissingList()),
    "the list is not among the network's": (status({"txidStatus": FINE, "listStatuses": OTHER_LIST}), MissingList()),
    "without list and index it is the list": (status({"txidStatus": {}}), MissingList()),
    "no indexes at all": (status({"listStatuses": CARRIED}), Nothing()),
    "no validated index": (status({"txidStatus": {"currentTxidIndex": 1}, "listStatuses": CARRIED}), Nothing()),
    "no current index": (status({"txidStatus": {"validatedTxidIndex": 1}, "listStatuses": CARRIED}), Nothing()),
    "the network is looked for before the list": (b'{"result":{"forNetwork":{},"listKeys":[]},"id":1}', Nothing()),
    "zero is an index": (
        status({"txidStatus": {"currentTxidIndex": 0, "validatedTxidIndex": 0}, "listStatuses": CARRIED}),
        Indexes(0, 0),
    ),
}


@pytest.mark.clause("M9", "S12", "S13")
@pytest.mark.parametrize(("body", "expected"), STATUSES.values(), ids=STATUSES)
def test_a_status_is_read_as_the_rules_need_it(body: bytes, expected: Found) -> None:
    assert found_on_ethereum(body) == expected


@pytest.mark.clause("R10")
@pytest.mark.parametrize(
    "index", [b"null", b"true", b"1.0", b"1e3", b"-1", b"9007199254740992", b"1" + b"0" * 40, b'"41"', b'"0x29"', b"[]"]
)
def test_an_index_that_is_no_count_fails_its_chain_alone(index: bytes) -> None:
    body = recorded("ppoi-node-status.json").replace(b'"validatedTxidIndex":1230', b'"validatedTxidIndex":' + index)
    found = parse_node_status(body, NETWORKS, REQUIRED_LIST)
    assert found[1] == Failed("not_understood: validatedTxidIndex")
    assert found[137] == MissingList()


@pytest.mark.parametrize("network", [None, [], "Ethereum", {"txidStatus": [], "listStatuses": CARRIED}])
def test_a_network_of_another_shape_fails(network: Any) -> None:
    assert isinstance(found_on_ethereum(status(network)), Failed)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(
            b'{"jsonrpc":"2.0","error":{"code":-32603,"message":"secret"},"id":1}',
            "jsonrpc_error: -32603",
            id="an error inside a 200",
        ),
        pytest.param(b'{"status":"ok"}', "not_understood: no JSON-RPC answer", id="the greeting, which proves nothing"),
        pytest.param(b"[" * 20_000, "not_understood: nested too deeply", id="deep nesting"),
    ],
)
def test_what_is_no_status_fails_for_all_chains(body: bytes, reason: str) -> None:
    with pytest.raises(ProbeFailed) as caught:
        parse_node_status(body, NETWORKS, REQUIRED_LIST)
    assert caught.value.reason == reason


@pytest.mark.clause("M9")
def test_the_node_is_asked_with_empty_params_for_all_chains_at_once() -> None:
    source = ppoi_source("ppoi", PpoiTable("http://127.0.0.1:1", REQUIRED_LIST, (1, 8453), {"8453": "Base"}))
    assert source.request.body is not None
    assert msgspec.json.decode(source.request.body) == {
        "jsonrpc": "2.0",
        "method": "ppoi_node_status",
        "params": {},
        "id": 1,
    }
    body = status({"txidStatus": FINE, "listStatuses": CARRIED}).replace(b"Ethereum", b"Base")
    assert source.checks == (Check("ppoi", 1), Check("ppoi", 8453))
    assert source.parse(body) == {Check("ppoi", 1): Nothing(), Check("ppoi", 8453): Indexes(41, 42)}
