"""All ways to go wrong in one table, whether they are ordered, drawn, or part of a world that names them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from lookout.demo.sim.layout import SubjectKind


class Parameter(NamedTuple):
    """The one number that an order may give. A fault's size is that number times ``unit``."""

    name: str
    default: int
    lowest: int
    highest: int
    unit: int = 1


class Odds(NamedTuple):
    """How often a subject has a fault, how long it lasts, and how large it is.

    One of 0 times a month is never drawn, and only happens in a world that names it: each fault that is drawn changes
    what all seeds draw. So does the order of the table.
    """

    per_month: float
    shortest_s: float
    longest_s: float
    smallest: int = 0
    largest: int = 0


class Fault(NamedTuple):
    """One of the ways to go wrong."""

    name: str
    explanation: str
    applies_to: tuple[SubjectKind, ...] = ()  # that it can be ordered for
    parameter: Parameter | None = None
    odds: Mapping[SubjectKind, Odds] = MappingProxyType({})  # of the subjects that have it in a world


EVERYBODY: Final = 1_000_000
ANOTHER_CHAIN: Final = 61
_FAR: Final = 10**12
_SPEAKERS: Final[tuple[SubjectKind, ...]] = (
    *("endpoint", "graphql-indexer", "document", "node"),
    *("ppoi", "peers", "messages", "responder", "bundler", "relayer"),
)
_FOLLOWERS: Final[tuple[SubjectKind, ...]] = ("graphql-indexer", "document", "share", "network")
_LISTERS: Final[tuple[SubjectKind, ...]] = ("graphql-indexer", "document", "share")
_MEMBERS: Final = Parameter("first", EVERYBODY, 1, EVERYBODY)

# These show in how an answer comes, whatever it would have been.
_WIRE: Final = (
    Fault("refuse", "the connection is reset at once; one port cannot refuse for one upstream alone", _SPEAKERS),
    Fault(
        "hang",
        "the request is accepted and never answered",
        _SPEAKERS,
        odds={
            "endpoint": Odds(4, 10, 3_600),
            "indexer": Odds(3, 20, 3_600),
            "ppoi": Odds(2, 20, 3_600),
            "messages": Odds(2, 20, 3_600),
            "peers": Odds(2, 20, 3_600),
            "responder": Odds(3, 20, 3_600),
        },
    ),
    Fault("drip", "the right answer, one byte a second", _SPEAKERS),
    Fault("endless", "a JSON body that never ends", _SPEAKERS),
    Fault("interim", "interim responses (103) without an end, and no answer", _SPEAKERS),
    Fault("chunks", "a body without an end, in chunks of one byte", _SPEAKERS),
    Fault("numbers", "a JSON list of numbers that take long to convert, a MiB of them", _SPEAKERS),
    Fault("garbage", "random bytes that claim to be JSON", _SPEAKERS),
    Fault("html", "200 with a web page", _SPEAKERS),
    Fault("status", "an HTTP error", _SPEAKERS, Parameter("code", 500, 300, 599)),
    Fault(
        "rate-limit",
        "429, with JSON-RPC error -32005 where JSON-RPC is spoken; code 200 tells it in the body alone",
        _SPEAKERS,
        Parameter("code", 429, 200, 429),
    ),
    Fault(
        "late",
        "the right answer, after a while",
        _SPEAKERS,
        Parameter("ms", 3_000, 1, 600_000),
        {"endpoint": Odds(0, 30, 14_400, 500, 9_000)},
    ),
    Fault("slow-pages", "each page of the store takes a while", ("messages",), Parameter("ms", 600, 1, 600_000)),
)
_FAIL: Final = Fault(
    "fail",
    "answers with an error, or refuses",
    odds={
        "endpoint": Odds(8, 10, 7_200),
        "indexer": Odds(4, 20, 7_200),
        "ppoi": Odds(4, 20, 7_200),
        "messages": Odds(3, 20, 3_600),
        "peers": Odds(3, 20, 3_600),
        "responder": Odds(4, 20, 7_200),
    },
)
# These show in what is answered.
_ANSWERS: Final = (
    Fault(
        "outage", "fails, does no work meanwhile, and has to catch up afterwards", odds={"indexer": Odds(2, 60, 10_800)}
    ),
    Fault(
        "lag", "so many blocks, or indexes of ppoi, behind", ("endpoint", *_FOLLOWERS), Parameter("by", 1_000, 1, _FAR)
    ),
    Fault(
        "freeze",
        "answers for ever with the height, or validated index, of this moment",
        ("endpoint", *_FOLLOWERS),
        odds={"endpoint": Odds(4, 60, 14_400), "indexer": Odds(2, 120, 14_400), "network": Odds(3, 120, 14_400)},
    ),
    Fault(
        "behind",
        "works at so many percent of the chain's speed",
        odds={"indexer": Odds(3, 600, 14_400, 5, 95), "network": Odds(3, 600, 14_400, 5, 95)},
    ),
    Fault(
        "wipe",
        "has nothing, and afterwards begins with the block of so many ms before",
        odds={"indexer": Odds(0, 20, 600, 600_000, 43_200_000)},
    ),
    Fault("stale", "what was true so many ms ago", odds={"endpoint": Odds(4, 60, 14_400, 20_000, 3_600_000)}),
    Fault(
        "lie",
        "so many blocks or indexes too high",
        ("endpoint", *_FOLLOWERS),
        Parameter("by", 1_000_000, 1, _FAR),
        {"endpoint": Odds(2, 30, 7_200, 50, 1_000_000)},
    ),
    Fault("lie-low", "so many blocks too low", odds={"endpoint": Odds(2, 30, 7_200, 50, 1_000_000)}),
    Fault(
        "future",
        "block timestamps ahead of now",
        ("endpoint",),
        Parameter("seconds", 3_600, 1, 10**9, unit=1000),
        {"endpoint": Odds(2, 30, 7_200, 90_000, 86_400_000)},
    ),
    Fault(
        "wrong-chain",
        "the endpoint is of another chain",
        ("endpoint", "bundler"),
        Parameter("chainId", ANOTHER_CHAIN, 1, _FAR),
        {"endpoint": Odds(2, 30, 7_200)},
    ),
    Fault(
        "past",
        "block timestamps too old",
        ("endpoint",),
        Parameter("seconds", 86_400, 1, _FAR, unit=1000),
        {"endpoint": Odds(0, 30, 14_400, 60_000, 86_400_000)},
    ),
    Fault(
        "genesis",
        "the endpoint is at block 0, which is of 1970 or of the second that is given; a new test node's is of now",
        ("endpoint",),
        Parameter("timestamp", 0, 0, _FAR, unit=1000),
        {"endpoint": Odds(0, 30, 7_200)},
    ),
    Fault(
        "rebuild",
        "an indexer that is built again: nothing for a minute, then from the block of a day before at so many times the"
        " chain's speed",
        ("graphql-indexer", "share"),
        Parameter("times", 50, 2, 1_000_000),
    ),
    Fault(
        "halt",
        "the chain itself stops, for everybody who follows it",
        ("chain",),
        odds={"chain": Odds(0.5, 300, 7_200)},
    ),
    Fault("pace", "a block takes so many percent of its usual time", odds={"chain": Odds(2, 600, 43_200, 40, 300)}),
    Fault(
        "reorg",
        "the newest blocks are taken back; this happens once and leaves nothing to clear",
        ("chain",),
        Parameter("depth", 3, 1, 10_000),
        {"chain": Odds(30, 0.001, 0.001, 1, 6)},
    ),
    Fault(
        "missing-list",
        "the required list is not among the node's, or not in the network's",
        ("ppoi", "network"),
        odds={"ppoi": Odds(1, 300, 7_200)},
    ),
    Fault(
        "missing-network",
        "the answer leaves this chain out",
        ("network", "share"),
        odds={"network": Odds(0.5, 300, 7_200)},
    ),
    Fault("absent-index", "txidStatus has none of its fields", ("network",)),
    Fault("zero-peers", "connected with nobody", ("peers",), odds={"peers": Odds(2, 20, 1_800)}),
    Fault(
        "some-silent",
        "so many percent of the broadcasters announce nothing: at least one, never all",
        odds={"broadcasters": Odds(8, 60, 21_600, 1, 99)},
    ),
    Fault(
        "silent",
        "the first so many broadcasters, or all, announce nothing more",
        ("broadcasters",),
        _MEMBERS,
        {"broadcasters": Odds(2, 60, 7_200)},
    ),
    Fault("none-known", "no broadcaster is known", odds={"broadcasters": Odds(0.5, 300, 3_600)}),
    Fault(
        "unsigned",
        "the first so many broadcasters, or all, send signatures that do not verify",
        ("broadcasters",),
        _MEMBERS,
    ),
    Fault("null-status", "200 with GraphQL errors and null for the status", ("graphql-indexer",)),
    Fault("no-entry-point", "the bundler's list of entry points is empty", ("bundler",)),
    Fault("paused", "the relayer's status is not ok", ("relayer",)),
    Fault(
        "hole",
        "the list of transactions lacks those of the newest so many blocks that the indexer has at this moment",
        _LISTERS,
        Parameter("blocks", 100, 1, _FAR),
    ),
    Fault(
        "extra",
        "the list has so many transactions that the chain does not have, in the newest blocks of this moment",
        _LISTERS,
        Parameter("transactions", 1, 1, 1_000),
    ),
    Fault(
        "drop-logs",
        "eth_getLogs leaves out one block in so many that have logs",
        ("endpoint",),
        Parameter("oneIn", 2, 1, _FAR),
    ),
    Fault(
        "narrow",
        "eth_getLogs of more than so many blocks is refused with -32005",
        ("endpoint",),
        Parameter("blocks", 100, 1, _FAR),
    ),
)

WIRE_FAULTS: Final = frozenset(fault.name for fault in _WIRE)
FAULTS: Final[Mapping[str, Fault]] = {fault.name: fault for fault in (_FAIL, *_WIRE, *_ANSWERS)}
ORDERED: Final[Mapping[str, Fault]] = {name: fault for name, fault in FAULTS.items() if fault.applies_to}
