"""The services: what follows from the few facts that are declared of each."""

import pytest

from lookout.core.model import Blocks, Check, Indexes, Members, Peers, Responding
from lookout.core.services import SERVICES, Service, all_checks
from tests.declared import including


@pytest.mark.clause("M9", "R12")
def test_the_five_of_the_contract_are_declared_in_the_reports_order() -> None:
    assert [(each.name, each.answer, each.is_shared) for each in SERVICES] == [
        ("messaging", Peers, True),
        ("ppoi", Indexes, False),
        ("broadcasters", Members, False),
        ("indexer", Blocks, False),
        ("hosted-indexer", Blocks, False),
    ]


@pytest.mark.clause("R3", "R12")
def test_a_service_that_is_declared_has_its_rows_after_those_before_it_and_only_as_long_as_it_is() -> None:
    with including(SERVICES, Service("faucet", Responding)), including(SERVICES, Service("hub", Responding, True)):
        checks = all_checks([137, 1])
        assert checks[-3:] == (Check("faucet", 1), Check("faucet", 137), Check("hub", None))
    assert checks[:-3] == all_checks([1, 137])
