"""Hostile bytes from strangers: whatever comes, it is answered, read, or refused in words."""

from contextlib import nullcontext
from typing import Final

from hypothesis import strategies as st

from tests.campaign.part import Outcome, Part
from tests.contract.protocols.hostile import check_ends_cleanly, hostile_answers
from tests.contract.protocols.recorded import PARSERS, recorded
from tests.fuzz import beside
from tests.fuzz.cuts import CUTS
from tests.fuzz.floods import try_floods
from tests.fuzz.hunt import Kind, hunt
from tests.fuzz.readers import NODE, READERS
from tests.fuzz.web import HTTP

_ANSWERS: Final = st.sampled_from(list(PARSERS)).flatmap(
    lambda parser: st.tuples(st.just(parser), hostile_answers(recorded(PARSERS[parser][1])))
)


def _judge_answer(case: tuple[str, bytes]) -> str:
    parser, body = case
    check_ends_cleanly(PARSERS[parser][0], body)
    return parser


KINDS: Final[dict[str, Kind]] = {
    "http": HTTP,
    "cuts": CUTS,
    "sources": Kind(_ANSWERS, lambda: nullcontext(_judge_answer)),
    "readers": READERS,
}


def _run(seconds: float) -> Outcome:
    """Three minutes of five for the floods, the rest for the kinds; the attacking lists take as long as they take."""
    floods = try_floods(0.6 * seconds)
    tried, failures = dict(floods.tried), list(floods.failures)
    tried["attacking lists"], found = beside.try_all()
    failures += found
    for name in KINDS:
        tried[f"{name} cases"], found = hunt(name, KINDS[name], 0.4 * seconds / len(KINDS))
        failures += found
    return Outcome(tried, tuple(failures), "" if NODE else "needs Node")


_WHAT: Final = "floods, attacking lists; hostile bytes to the server, the sources and the readers"
PART: Final = Part(_WHAT, 27, _run)
