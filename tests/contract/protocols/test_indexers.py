"""How far the indexers of each kind say they are."""

from typing import Any

import msgspec
import pytest

from lookout.core.model import Blocks, FaultyBlocks, Found, Nothing
from lookout.protocols import envio, generic, ponder, subgraph
from lookout.protocols.answers import value_at
from lookout.protocols.client.failure import ProbeFailed
from tests.cases import cases
from tests.contract.protocols.recorded import PARSERS, recorded

NOT_COUNTS = [
    *(b"null", b"true", b"1.0", b"-2", b"9007199254740992", b'"56"', b'"-1"', b"1e3", b"-1.0", b"[]", b"{}"),
    *(b"1" + b"0" * 40, b"-1" + b"0" * 40),
]


@pytest.mark.clause("M9")
@pytest.mark.parametrize(
    ("parser", "recording", "expected"),
    [
        pytest.param("squid", "squid-status.json", Blocks(56), id="a squid's height"),
        pytest.param("subgraph", "subgraph-meta.json", Blocks(19_000_000), id="a subgraph's own block"),
        pytest.param("index node", "subgraph-indexing-status.json", Blocks(19_000_001), id="an index node's block"),
        pytest.param(
            "index node",
            "subgraph-failed.json",
            FaultyBlocks(18_000_000),
            id="one that stopped is where it stopped",
        ),
        pytest.param("ponder", "ponder-status.json", Blocks(19_000_002), id="a ponder's block of the right chain"),
        pytest.param("own indexer", "ponder-status.json", Blocks(19_000_002), id="a block number at a pointer"),
        pytest.param("envio", "envio-meta.json", Blocks(22_817_138), id="the block that an envio has written"),
    ],
)
def test_a_recorded_answer_gives_a_position(parser: str, recording: str, expected: Found) -> None:
    parse, _ = PARSERS[parser]
    assert parse(recorded(recording)) == expected


NOT_UNDERSTOOD = {
    "a processor that never ran": ("squid", recorded("squid-never-ran.json"), "graphql_errors"),
    "errors beside a height": (
        "squid",
        b'{"errors":[{"message":"x"}],"data":{"squidStatus":{"height":5}}}',
        "graphql_errors",
    ),
    "NaN": ("squid", b'{"data":{"squidStatus":{"height":NaN}}}', "not_json"),
    "a number beyond numbers": ("squid", b'{"data":{"squidStatus":{"height":1e400}}}', "not_understood: the height"),
    "a null _meta": ("subgraph", b'{"data":{"_meta":null}}', "not_understood: no _meta"),
    "gateway errors": ("subgraph", b'{"errors":[{"message":"bad indexers"}]}', "graphql_errors"),
    "a number that is no string": (
        "index node",
        b'{"data":{"indexingStatuses":[{"chains":[{"latestBlock":{"number":19}}]}]}}',
        "not_understood: the block number",
    ),
    "a string beyond the largest count": (
        "index node",
        b'{"data":{"indexingStatuses":[{"chains":[{"latestBlock":{"number":"9007199254740992"}}]}]}}',
        "not_understood: the block number",
    ),
    "two deployments": (
        "index node",
        b'{"data":{"indexingStatuses":[{"chains":[]},{"chains":[]}]}}',
        "not_understood: not one deployment on one chain, with its latest block",
    ),
    "an error for a status": ("ponder", b'{"error":"x"}', "not_understood: no status of chains"),
    "a chain without a block": ("ponder", b'{"mainnet":{"id":1}}', "not_understood: no block"),
    "a chain that does not say which": (
        "ponder",
        b'{"mainnet":{"block":{"number":1}}}',
        "not_understood: a chain's id",
    ),
    "an envio that does not say which chain": (
        "envio",
        b'{"data":{"_meta":[{"progressBlock":5,"startBlock":0}]}}',
        "not_understood: a chain's id",
    ),
    "an envio that does not say where it starts": (
        "envio",
        b'{"data":{"_meta":[{"chainId":1,"progressBlock":5,"startBlock":null}]}}',
        "not_understood: the start block",
    ),
}


@pytest.mark.clause("M9")
@pytest.mark.parametrize(("parser", "body", "reason"), NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD)
def test_an_answer_that_is_not_understood_fails(parser: str, body: bytes, reason: str) -> None:
    parse, _ = PARSERS[parser]
    with pytest.raises(ProbeFailed) as caught:
        parse(body)
    assert caught.value.reason == reason


@pytest.mark.clause("R10")
@pytest.mark.parametrize("number", NOT_COUNTS)
@pytest.mark.parametrize(
    ("parser", "body"),
    [
        ("squid", b'{"data":{"squidStatus":{"height":%b}}}'),
        ("subgraph", b'{"data":{"_meta":{"block":{"number":%b}}}}'),
        ("ponder", b'{"mainnet":{"id":1,"block":{"number":%b}}}'),
        ("envio", b'{"data":{"_meta":[{"chainId":1,"progressBlock":%b,"startBlock":0}]}}'),
    ],
)
def test_a_height_that_is_no_count_fails(parser: str, body: bytes, number: bytes) -> None:
    parse, _ = PARSERS[parser]
    with pytest.raises(ProbeFailed, match=r"not_understood: the (height|block number|progress block)"):
        parse(body % number)


@pytest.mark.clause("S12")
@pytest.mark.parametrize(
    ("parser", "body"),
    [
        pytest.param("squid", recorded("squid-new-processor.json"), id="a squid without a first batch"),
        pytest.param("ponder", b"{}", id="a ponder without chains"),
        pytest.param("envio", recorded("envio-new-indexer.json"), id="an envio without a first batch"),
        pytest.param(
            "envio",
            b'{"data":{"_meta":[{"chainId":1,"progressBlock":14737690,"startBlock":14737691}]}}',
            id="an envio at the block before its first",
        ),
        pytest.param("envio", b'{"data":{"_meta":[]}}', id="an envio without the chain"),
        pytest.param(
            "envio",
            b'{"data":{"_meta":[{"chainId":10,"progressBlock":9,"startBlock":0}]}}',
            id="an envio that ignores which chain was asked for, and does not have it",
        ),
        pytest.param("ponder", b'{"anvil":{"id":31337,"block":{"number":317}}}', id="a ponder of another chain"),
    ],
)
def test_an_indexer_may_have_nothing_yet(parser: str, body: bytes) -> None:
    parse, _ = PARSERS[parser]
    assert parse(body) == Nothing()


CHAINS_OF_ENVIO = {
    "a chain id as text, at its first block": b'{"chainId":"1","progressBlock":9,"startBlock":9}',
    "the chain is the second of two": (
        b'{"chainId":10,"progressBlock":5,"startBlock":0},{"chainId":1,"progressBlock":9,"startBlock":0}'
    ),
}


@pytest.mark.parametrize("entries", CHAINS_OF_ENVIO.values(), ids=CHAINS_OF_ENVIO)
def test_an_envios_chain_is_found_by_its_id(entries: bytes) -> None:
    assert envio.parse_meta(b'{"data":{"_meta":[%b]}}' % entries, 1) == Blocks(9)


def test_an_envio_is_asked_about_one_chain() -> None:
    asked = msgspec.json.decode(envio.meta_query(42161))["query"]
    assert asked == "{ _meta(where: {chainId: {_eq: 42161}}) { chainId progressBlock startBlock } }"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h:1", "http://h:1/status"),
        ("http://h:1/", "http://h:1/status"),
        ("http://h:1/status", "http://h:1/status"),
        ("http://h:1/ponder?key=K", "http://h:1/ponder/status?key=K"),
        ("http://h:1/status?key=K", "http://h:1/status?key=K"),
    ],
)
def test_a_ponders_status_is_found_from_either_address(url: str, expected: str) -> None:
    assert ponder.status_url(url) == expected


def test_a_deployment_is_quoted_into_the_query() -> None:
    asked = msgspec.json.decode(subgraph.status_query('Qm"x'))["query"]
    assert 'subgraphs: ["Qm\\"x"]' in asked


# The document and the pointers of RFC 6901, section 5.
RFC_DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "e^f": 3,
    "g|h": 4,
    "i\\j": 5,
    'k"l': 6,
    " ": 7,
    "m~n": 8,
}


@pytest.mark.clause("M9")
@pytest.mark.parametrize(("pointer", "expected"), cases("indexers", "a pointer names what rfc 6901 says"))
def test_a_pointer_names_what_rfc_6901_says(pointer: str, expected: Any) -> None:
    assert value_at(RFC_DOCUMENT, pointer) == expected


def test_an_escaped_tilde_does_not_escape_again() -> None:
    assert value_at({"~1": 5}, "/~01") == 5


@pytest.mark.parametrize("pointer", ["/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/foo/\u0660", "/nope", "/foo/0/0"])
def test_a_pointer_to_nothing_fails(pointer: str) -> None:
    with pytest.raises(ProbeFailed, match="pointer"):
        value_at(RFC_DOCUMENT, pointer)


@pytest.mark.parametrize("written", [b"317", b'"317"', b'"0x13d"', b'"0X13D"', b'"0x0013d"'])
def test_a_block_number_is_an_integer_digits_or_hexadecimal(written: bytes) -> None:
    assert generic.parse_document(b'{"block":%b}' % written, "/block") == Blocks(317)


@pytest.mark.clause("R10")
@pytest.mark.parametrize(
    "written",
    [
        *(each for each in NOT_COUNTS if each != b'"56"'),
        b"-1",
        b'""',
        b'"0x"',
        b'"1.0"',
        b'" 1"',
        b'"1_0"',
        b'"0x20000000000000"',
        b'"9007199254740992"',
        '"\u0661"'.encode(),
    ],
)
def test_anything_else_is_no_block_number(written: bytes) -> None:
    with pytest.raises(ProbeFailed):
        generic.parse_document(b'{"block":%b}' % written, "/block")
