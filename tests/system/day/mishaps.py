"""What goes wrong upstream in the course of the day."""

from collections.abc import Sequence
from typing import Final

from lookout.core.model import Check
from tests.system.day.diary import Mishap
from tests.system.day.scale import LONGEST_PAUSE_S, Scale

# One after the other, each for as long as it takes to be shown.
ONE_BY_ONE: Final = (
    Mishap("squid/1", "refuse", (Check("indexer", 1),), "u"),
    Mishap("squid/42161", "hang", (Check("indexer", 42161),), "u"),
    Mishap("squid/11155111", "drip", (Check("indexer", 11155111),), "u"),
    Mishap("hosted/1", "garbage", (Check("hosted-indexer", 1),), "u"),
    Mishap("hosted/42161", "status", (Check("hosted-indexer", 42161),), "u", parameters={"code": 503}),
    Mishap("squid/137", "lag", (Check("indexer", 137),), "k", between="", parameters={"by": 200}),
    Mishap("hosted/56", "lag", (Check("hosted-indexer", 56),), "d", between="k", parameters={"by": 5_000}),
    Mishap("waku/peers", "zero-peers", (Check("messaging", None),), "u"),
    Mishap("rpc/1/a", "lie"),
    Mishap("rpc/56/c", "wrong-chain"),
    Mishap("rpc/137/b", "freeze"),
)
MISSING_LIST: Final = Mishap("ppoi/137", "missing-list", (Check("ppoi", 137),), "?", between="")
# While nothing can be stored; and from then on until other monitors have taken over.
UNSTORED: Final = Mishap("hosted/137", "refuse", (Check("hosted-indexer", 137),), "u")
OUTLIVING: Final = Mishap("squid/56", "refuse", (Check("indexer", 56),), "u")


def slow(scale: Scale) -> Sequence[Mishap]:
    """What takes a while to be noticed."""
    return (
        Mishap(
            "broadcasters/1",
            "silent",
            (Check("broadcasters", 1),),
            "u",
            between="d?",
            slow_s=scale.fresh_s,
            recovers_s=LONGEST_PAUSE_S,
        ),
        Mishap(
            "broadcasters/137",
            "silent",
            (Check("broadcasters", 137),),
            "d",
            between="",
            slow_s=scale.fresh_s,
            recovers_s=LONGEST_PAUSE_S,
            parameters={"first": 3},
        ),
        Mishap(
            "ppoi/56",
            "lag",
            (Check("ppoi", 56),),
            "k",
            between="",
            slow_s=scale.ppoi_behind_s,
            parameters={"by": 50},
        ),
    )
