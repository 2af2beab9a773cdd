"""Faults that are set by hand: which there are, what each applies to, and which were set, from when until when.

A subject is a part of an upstream that can go wrong on its own, named by a path (``rpc/1/a``). A target is a subject,
the beginning of its path (``rpc/1``, ``rpc``), or ``*``. Where several targets cover a subject, the longest decides.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple

SubjectKind = Literal[
    "chain",  # rpc/1: the chain itself
    "endpoint",  # rpc/1/a
    "graphql-indexer",  # squid/1, hosted/1, subgraph/1
    "document",  # json/1
    "node",  # index-node, ponder: one answer about many chains
    "share",  # index-node/1, ponder/1: what it tells of one chain
    "ppoi",  # the ppoi node
    "network",  # ppoi/1
    "peers",  # waku/peers
    "messages",  # waku/messages: the store and the relay
    "broadcasters",  # broadcasters/1
    "responder",  # faucet/1: a service that only answers
]
Subjects = Mapping[str, SubjectKind]

_SPEAKERS: Final[tuple[SubjectKind, ...]] = (
    "endpoint",
    "graphql-indexer",
    "document",
    "node",
    "ppoi",
    "peers",
    "messages",
    "responder",
)
_FOLLOWERS: Final[tuple[SubjectKind, ...]] = ("graphql-indexer", "document", "share", "network")


class Parameter(NamedTuple):
    """The one number that a fault may be given."""

    name: str
    default: int
    lowest: int
    highest: int


class FaultKind(NamedTuple):
    """One of the ways to go wrong."""

    explanation: str
    applies_to: tuple[SubjectKind, ...]
    parameter: Parameter | None = None


EVERYBODY: Final = 1_000_000
_FAR: Final = 10**12

FAULT_KINDS: Final[Mapping[str, FaultKind]] = {
    "refuse": FaultKind("the connection is reset at once; one port cannot refuse for one upstream alone", _SPEAKERS),
    "hang": FaultKind("the request is accepted and never answered", _SPEAKERS),
    "drip": FaultKind("the right answer, one byte a second", _SPEAKERS),
    "endless": FaultKind("a JSON body that never ends", _SPEAKERS),
    "interim": FaultKind("interim responses (103) without an end, and no answer", _SPEAKERS),
    "numbers": FaultKind("a JSON list of numbers that take long to convert, a MiB of them", _SPEAKERS),
    "garbage": FaultKind("random bytes that claim to be JSON", _SPEAKERS),
    "html": FaultKind("200 with a web page", _SPEAKERS),
    "status": FaultKind("an HTTP error", _SPEAKERS, Parameter("code", 500, 300, 599)),
    "rate-limit": FaultKind(
        "429, with JSON-RPC error -32005 where JSON-RPC is spoken; code 200 tells it in the body alone",
        _SPEAKERS,
        Parameter("code", 429, 200, 429),
    ),
    "late": FaultKind("the right answer, after a while", _SPEAKERS, Parameter("ms", 3_000, 1, 600_000)),
    "slow-pages": FaultKind("each page of the store takes a while", ("messages",), Parameter("ms", 600, 1, 600_000)),
    "wrong-chain": FaultKind("the endpoint is of another chain", ("endpoint",), Parameter("chainId", 61, 1, _FAR)),
    "lag": FaultKind(
        "so many blocks, or indexes of ppoi, behind", ("endpoint", *_FOLLOWERS), Parameter("by", 1_000, 1, _FAR)
    ),
    "freeze": FaultKind(
        "answers for ever with the height, or validated index, of this moment", ("endpoint", *_FOLLOWERS)
    ),
    "lie": FaultKind(
        "so many blocks or indexes too high", ("endpoint", *_FOLLOWERS), Parameter("by", 1_000_000, 1, _FAR)
    ),
    "future": FaultKind("block timestamps ahead of now", ("endpoint",), Parameter("seconds", 3_600, 1, 10**9)),
    "past": FaultKind("block timestamps too old", ("endpoint",), Parameter("seconds", 86_400, 1, _FAR)),
    "genesis": FaultKind(
        "the endpoint is at block 0, which is of 1970 or of the second that is given; a new test node's is of now",
        ("endpoint",),
        Parameter("timestamp", 0, 0, _FAR),
    ),
    "rebuild": FaultKind(
        "an indexer that is built again: nothing for a minute, then from the block of a day before at so many times the"
        " chain's speed",
        ("graphql-indexer", "share"),
        Parameter("times", 50, 2, 1_000_000),
    ),
    "halt": FaultKind("the chain itself stops, for everybody who follows it", ("chain",)),
    "reorg": FaultKind(
        "the newest blocks are taken back; this happens once and leaves nothing to clear",
        ("chain",),
        Parameter("depth", 3, 1, 10_000),
    ),
    "missing-list": FaultKind(
        "the required list is not among the node's, or not in the network's", ("ppoi", "network")
    ),
    "missing-network": FaultKind("the answer leaves this chain out", ("network", "share")),
    "absent-index": FaultKind("txidStatus has none of its fields", ("network",)),
    "zero-peers": FaultKind("connected with nobody", ("peers",)),
    "silent": FaultKind(
        "the first so many broadcasters, or all, announce nothing more",
        ("broadcasters",),
        Parameter("first", EVERYBODY, 1, EVERYBODY),
    ),
    "unsigned": FaultKind(
        "the first so many broadcasters, or all, send signatures that do not verify",
        ("broadcasters",),
        Parameter("first", EVERYBODY, 1, EVERYBODY),
    ),
    "null-status": FaultKind("200 with GraphQL errors and null for the status", ("graphql-indexer",)),
}
_MOMENTARY: Final = "reorg"


class Fault(NamedTuple):
    """The name of a kind, and its number (0 where it has none)."""

    name: str
    size: int = 0


class Order(NamedTuple):
    """Set this fault on a target, or with None clear the target and all beneath it."""

    target: str
    fault: Fault | None


class OrderError(ValueError):
    """An order that cannot be followed; the text says why."""


class ActiveFault(NamedTuple):
    """A fault that was set on a target, and holds until ``end_at`` if that is known."""

    target: str
    fault: Fault
    begin_at: int
    end_at: int | None

    def holds(self, at: int) -> bool:
        return self.begin_at <= at and (self.end_at is None or at < self.end_at)


class FaultLog:
    """Every fault that was ever set: what is asked about an instant in the past is answered as it was then."""

    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects
        self._by_target: dict[str, list[ActiveFault]] = {}

    def apply(self, order: Order, at: int) -> None:
        if order.fault is None:
            for target in self._by_target:
                if order.target in _covering(target):
                    self._end(target, at)
            return
        end_at = None
        if order.fault.name == _MOMENTARY:
            end_at = at + 1
        else:
            self._end(order.target, at)
        self._by_target.setdefault(order.target, []).append(ActiveFault(order.target, order.fault, at, end_at))

    def set_at(self, at: int) -> list[ActiveFault]:
        """All that holds at this instant."""
        return [active for faults in self._by_target.values() for active in faults if active.holds(at)]

    def find(self, subject: str, at: int) -> ActiveFault | None:
        """The fault that this subject has at this instant."""
        for active in self._about(subject):
            if active.holds(at):
                return active
        return None

    def find_all(self, subject: str) -> list[ActiveFault]:
        """All faults that this subject ever had."""
        return list(self._about(subject))

    def _about(self, subject: str) -> Iterator[ActiveFault]:
        """What may matter to a subject: the longest target first, and of each target the newest."""
        for target in _covering(subject):
            for active in reversed(self._by_target.get(target, ())):
                if self.subjects[subject] in FAULT_KINDS[active.fault.name].applies_to:
                    yield active

    def _end(self, target: str, at: int) -> None:
        self._by_target[target] = [
            active._replace(end_at=at) if active.end_at is None else active
            for active in self._by_target.get(target, ())
        ]


def parse_order(document: object, subjects: Subjects) -> Order:
    """What was ordered; OrderError says what is wrong with it."""
    if not isinstance(document, dict):
        raise OrderError('an order is a JSON object: {"target": "rpc/1/a", "fault": "hang"}')
    for key in ("target", "fault"):
        if key not in document:
            raise OrderError(f"{key} is missing")
    target, name = document["target"], document["fault"]
    further = {key: value for key, value in document.items() if key not in ("target", "fault")}
    covered = {kind for subject, kind in subjects.items() if target in _covering(subject)}
    if not covered:
        known = sorted({target for subject in subjects for target in _covering(subject)})
        raise OrderError(f"target is {target!r}; there are {', '.join(known)}")
    if name is None:
        if further:
            raise OrderError(f"{', '.join(further)}: nothing more can be said when clearing")
        return Order(target, None)
    if not isinstance(name, str) or name not in FAULT_KINDS:
        raise OrderError(f"fault is {name!r}; there are {', '.join(FAULT_KINDS)}, and null to clear")
    kind = FAULT_KINDS[name]
    if covered.isdisjoint(kind.applies_to):
        possible = [name for name, kind in FAULT_KINDS.items() if not covered.isdisjoint(kind.applies_to)]
        raise OrderError(f"{name} does not apply to {target}; what does: {', '.join(possible)}")
    return Order(target, Fault(name, _size(name, kind.parameter, further)))


def _size(name: str, parameter: Parameter | None, given: dict[str, object]) -> int:
    allowed = [] if parameter is None else [parameter.name]
    unknown = [key for key in given if key not in allowed]
    if unknown:
        raise OrderError(f"{', '.join(unknown)}: {name} takes {allowed[0] if allowed else 'no parameter'}")
    if parameter is None:
        return 0
    size = given.get(parameter.name, parameter.default)
    if isinstance(size, bool) or not isinstance(size, int) or not parameter.lowest <= size <= parameter.highest:
        raise OrderError(
            f"{parameter.name} is {size!r}; it is a whole number from {parameter.lowest} to {parameter.highest}"
        )
    return size


def _covering(subject: str) -> list[str]:
    """The targets that cover a subject or a target, the longest first."""
    parts = subject.split("/")
    longer = ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]
    return longer if subject == "*" else [*longer, "*"]
