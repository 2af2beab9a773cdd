"""How often the monitor's own tasks ask a source that answers for several chains."""

from collections.abc import Mapping
from itertools import pairwise

import pytest

from lookout.core.model import Check, Found, Indexes
from lookout.protocols.client.session import Session
from lookout.protocols.source import Now
from tests.builders import PPOI, SECOND, a_plan
from tests.unit.running_monitor import FAILED, Asked, lived

POLYGON = Check("ppoi", 137)


class OfTwoChains(Asked):
    """A source of two chains that takes a second to answer."""

    def __init__(self, *found: Found) -> None:
        super().__init__(PPOI)
        self.checks = (PPOI, POLYGON)
        self._of_both = found

    async def probe(self, session: Session, now: Now, /) -> Mapping[Check, Found]:
        await super().probe(session, now)
        return dict(zip(self.checks, self._of_both, strict=True))


@pytest.mark.clause("M1", "M2")
@pytest.mark.parametrize(
    ("found", "waits_s"),
    [
        pytest.param((Indexes(7, 7), Indexes(7, 7)), [30, 30, 30, 30], id="both chains answer"),
        pytest.param((Indexes(7, 7), FAILED), [30, 30, 30, 30], id="one chain fails: the source answers"),
        pytest.param((FAILED, FAILED), [30, 60, 120, 120], id="both fail: the source is asked less often"),
    ],
)
def test_a_source_of_several_chains_is_asked_less_often_only_when_all_of_them_fail(
    found: tuple[Found, Found], waits_s: list[int]
) -> None:
    source = OfTwoChains(*found)
    lived(400, a_plan(chains=(1, 137)), [source], [])
    gaps = [later - earlier for earlier, later in pairwise(source.asked)]
    assert gaps[:4] == [wait_s * SECOND + 1_500 + SECOND for wait_s in waits_s]  # the jitter, and the second it takes
