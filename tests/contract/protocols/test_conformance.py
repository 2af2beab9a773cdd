"""Every protocol that is chosen by ``kind`` passes the conformance kit, as those of other packages have to."""

import sys

import msgspec
import pytest

from lookout.protocols.conformance import assert_conforms
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.source import AnyProtocol, Protocol
from tests.contract.protocols.recorded import KIND_TABLES, PARSERS, recorded

# What each of the others makes of hostile answers is in test_garbage.py.
EVERYDAY = {"squid", "JSON-RPC", "node"}


def place_of(protocol: AnyProtocol) -> str:
    """As an entry point would say it."""
    modules = {name: vars(module) for name, module in sys.modules.items() if name.startswith("lookout.protocols.")}
    return next(f"{name}:{key}" for name, all_ in modules.items() for key, value in all_.items() if value is protocol)


@pytest.mark.clause("M9", "R10")
@pytest.mark.parametrize(
    "parser", [pytest.param(each, marks=() if each in EVERYDAY else pytest.mark.long) for each in KIND_TABLES]
)
def test_a_built_in_protocol_conforms(parser: str) -> None:
    table, body = KIND_TABLES[parser], recorded(PARSERS[parser][1])
    protocol = PROTOCOLS[table.kind]
    assert isinstance(protocol, Protocol)
    assert_conforms(place_of(protocol), msgspec.structs.asdict(table), good={body: protocol.parse(body, table)})
