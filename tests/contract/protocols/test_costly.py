"""Answers that fit the limits and would take long to convert: what nobody needs is passed over, the rest refused."""

import json
from typing import Any

import pytest

from lookout.protocols.answers import MOST_VALUES
from lookout.protocols.client.failure import ProbeFailed
from tests.contract.protocols.costly import listed
from tests.contract.protocols.hostile import replaced
from tests.contract.protocols.recorded import PARSERS, recorded

# A table in each recorded answer that may have more in it than is asked for.
ROOM: dict[str, tuple[Any, ...]] = {
    "ppoi": ("result",),
    "squid": ("data", "squidStatus"),
    "subgraph": ("data", "_meta"),
    "index node": ("data", "indexingStatuses", 0),
    "ponder": ("mainnet", "block"),
    "own indexer": (),
    "envio": ("data", "_meta", 0),
    "node": (),
    "http": (),
    "JSON-RPC": (),
    "head": ("result",),
    "chain id": (),
    "logs": ("result", 0),
    "list": ("data", "commitments", 0),
    "entries": ("data", "transactions", 0),
    "count": ("data", "transactionsConnection"),
    "connected peers": (0,),
    "known peers": (0,),
    "store": ("messages", 0, "message"),
    "relay": (0,),
}


def with_more(parser: str, more: bytes) -> bytes:
    recording = json.loads(recorded(PARSERS[parser][1]))
    table = recording
    for key in ROOM[parser]:
        table = table[key]
    wider = replaced(recording, ROOM[parser], {**table, "more": "more of it"})
    return json.dumps(wider).encode().replace(b'"more of it"', more)


@pytest.mark.clause("M6", "M9")
@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize(
    "more", [b"1e400", b"[1e400]", b'{"a":{"b":-1e400}}', b"9" * 5_000], ids=["alone", "listed", "deep", "whole"]
)
def test_numbers_that_nobody_needs_are_not_converted(parser: str, more: bytes) -> None:
    """Seen by numbers that cannot be."""
    parse, file = PARSERS[parser]
    assert parse(with_more(parser, more)) == parse(recorded(file))


@pytest.mark.clause("M6")
@pytest.mark.parametrize("parser", PARSERS)
def test_an_answer_of_very_many_values_is_refused_before_any_is_opened(parser: str) -> None:
    parse, _ = PARSERS[parser]
    most = with_more(parser, b"[" + b",".join([b"1"] * (MOST_VALUES // 2)) + b"]")
    parse(most)
    for shape in ("numbers of one digit", "empty lists", "largest floats"):
        with pytest.raises(ProbeFailed, match="not_understood: too many values"):
            parse(with_more(parser, listed(shape, 600_000)))
