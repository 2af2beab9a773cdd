"""By which probes an indexer's kind is recognised."""

import pytest

from lookout.cli.trial import fits
from lookout.core.model import Row
from lookout.monitor.probe import ProbedRow
from tests.builders import INDEXER


@pytest.mark.parametrize(
    ("cause", "is_recognised"),
    [
        pytest.param(None, True, id="it is current"),
        pytest.param("behind: 400", True, id="it is behind, and was understood"),
        pytest.param("no_head", True, id="there is nothing to compare it with"),
        pytest.param("http_status: 404", False, id="it does not answer as this kind"),
        pytest.param("own_fault: no memory left", False, id="it could not be asked, which proves nothing"),
    ],
)
def test_a_kind_fits_if_its_answer_was_understood(cause: str | None, is_recognised: bool) -> None:
    assert fits(ProbedRow(Row(INDEXER, "unknown", "no-observation"), cause=cause)) is is_recognised
