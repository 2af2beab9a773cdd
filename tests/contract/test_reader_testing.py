"""What the Python reader offers to the tests of others; its documents are those of the JavaScript one."""

import json

import pytest

from lookout_reader import History, LiveReport, Needs, parse_history, parse_report
from lookout_reader.testing import STATES, document_of, fake_reader, history_of
from tools.states import MADE_AT, build_states

NEEDS = Needs(1, ("messaging", "ppoi", "broadcasters", "indexer"))


@pytest.mark.clause("C4")
@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("loading", ("unknown", None)),
        ("fine", None),
        ("unavailable", ("bad", None)),
        ("degraded", ("warn", None)),
        ("unknown", ("unknown", "not-observed")),
        ("unmonitored", ("unknown", "not-observed")),
        ("stale", ("unknown", "not-observed")),
        ("dead-monitor", ("unknown", "monitor-silent")),
        ("new-status", ("unknown", "not-observed")),
        ("dissent", None),
        ("reason:not-everywhere", ("unknown", "not-observed")),
        ("other-version", ("unknown", "monitor-silent")),
        ("no-network", ("unknown", "network")),
    ],
)
def test_a_reader_whose_state_is_set_says_what_stands_in_the_way(
    state: str, expected: tuple[str, str | None] | None
) -> None:
    reader = fake_reader(state)
    found = {check.service: (check.severity, check.cause) for check in reader.obstacles(NEEDS)}
    assert found.get("indexer") == expected
    assert reader.can_use(NEEDS) == (expected is None)


def test_a_state_that_is_set_is_told() -> None:
    reader = fake_reader("unavailable")
    updates = reader.updates()
    told = [next(updates).report_code]
    reader.show("fine")
    next(updates)
    assert (told, reader.when_usable(NEEDS)) == ([None], True)
    with pytest.raises(ValueError, match="'fien' is none of fine, "):
        reader.show("fien")


@pytest.mark.parametrize(("state", "document"), build_states().items(), ids=build_states())
def test_a_document_is_the_one_that_a_monitor_makes(state: str, document: object) -> None:
    assert json.loads(document_of(state, MADE_AT)) == document


def test_every_document_but_the_one_of_another_version_can_be_read() -> None:
    unreadable = [state for state in STATES if not isinstance(parse_report(document_of(state)), LiveReport)]
    assert unreadable == ["other-version"]
    assert isinstance(parse_history(history_of()), History)
