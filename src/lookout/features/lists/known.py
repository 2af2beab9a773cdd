"""What is known of indexers' lists: beside the chain's logs (S17 to S19), of their running hashes (S20), and beside a
ppoi node (S21). Each is stored as a document of its own."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import astuple

from lookout.core.model import Blocks, Check, Found, Gaps, Indexes
from lookout.features.lists.rules import coverage, links
from lookout.features.lists.rules.coverage import Coverage, describe_gaps, follow_position, gaps_of
from lookout.features.lists.rules.links import Links, confirmed_breaks, describe_breaks
from lookout.features.lists.rules.node_gap import NodeGap, confirmed_gap, describe_gap, doubt, read_gap
from lookout.state.errors import naming

_Value = TypeVar("_Value")


class Kind(NamedTuple, Generic[_Value]):
    """A kind of knowledge about a check. Each value is of one subject, a fingerprint of what is read."""

    name: str
    """Its documents begin with it."""
    begin: Callable[[str, int], _Value]
    """Nothing is known of this subject yet."""
    resume: Callable[[_Value, int, bool], _Value]
    """The monitor starts now, or its clock was set, as the last argument says."""
    gaps: Callable[[_Value], Gaps]
    """What the row is judged by."""
    describe: Callable[[_Value], str]
    """These gaps in words; "" if there are none."""
    decode: Callable[[bytes], _Value]

    def name_document(self, check: Check) -> str:
        return f"{self.name}/{check.service}/{check.chain_id}"


def _decode_coverage(document: bytes) -> Coverage:
    """Also reads 1.0.0's form, with missing and extra transactions apart, and some that were neither."""
    fields = msgspec.json.decode(document, type=dict[str, Any])
    for side, listed in (("missing", 0), ("extra", 1)):
        for old in fields.pop(side, {}).values():
            if old.get("stage", "suspected") != "elsewhere":
                place = {"first": old["block"], "last": old["block"]} if side == "missing" else {}
                is_confirmed = old.get("stage") == "confirmed"
                finding = {**old, **place, "listed": listed, "logged": 1 - listed, "is_confirmed": is_confirmed}
                fields.setdefault("findings", {})[old["hash"]] = finding
    return msgspec.convert(fields, Coverage)


COVERAGE: Final = Kind(
    name="coverage",
    begin=lambda subject, now: Coverage(subject=subject, began_at=now),
    resume=lambda known, now, _: coverage.resume(known, now),
    gaps=gaps_of,
    describe=describe_gaps,
    decode=_decode_coverage,
)
LINKS: Final = Kind(
    name="links",
    begin=lambda subject, _: Links(subject=subject),
    resume=lambda known, now, _: links.resume(known, now),
    gaps=lambda known: Gaps(breaks=len(confirmed_breaks(known))),
    describe=describe_breaks,
    decode=partial(msgspec.json.decode, type=Links),
)
NODE_GAP: Final = Kind(
    name="agreement",
    begin=lambda subject, _: NodeGap(subject),
    resume=lambda known, _, was_set: doubt(known) if was_set else known,
    gaps=lambda known: Gaps(gap=confirmed_gap(known)),
    describe=describe_gap,
    decode=partial(msgspec.json.decode, type=NodeGap),
)
KINDS: Final[tuple[Kind[Any], ...]] = (COVERAGE, LINKS, NODE_GAP)
DOCUMENTS: Final = tuple(kind.name for kind in KINDS)

Key = tuple[Kind[Any], Check]


def decode_known(documents: Mapping[str, bytes]) -> dict[Key, Any]:
    """StateError if a document cannot be read."""
    kinds = {kind.name: kind for kind in KINDS}
    known: dict[Key, Any] = {}
    for name, document in documents.items():
        if kind := kinds.get(name.partition("/")[0]):
            with naming(name):
                _, service, chain_id = name.split("/")
                known[kind, Check(service, int(chain_id))] = kind.decode(document)
    return known


class Known:
    """Of every check whose list is read. All calls are made on the event loop."""

    def __init__(self, kept: Mapping[Key, Any]) -> None:
        self._values = dict(kept)
        self._counted: dict[Check, int] = {}  # entries, of nodes that have not answered since
        self._said: dict[Check, int] = {}  # positions, of indexers whose last probe said one
        self._encoded: dict[str, tuple[object, bytes]] = {}

    def follow(self, subjects: Mapping[Key, str], now: int) -> None:
        """Read these from now on. What is known of another subject is forgotten."""
        before = ((key, self._values.get(key), subject) for key, subject in subjects.items())
        self._values = {
            key: value if value and value.subject == subject else key[0].begin(subject, now)
            for key, value, subject in before
        }

    def restart(self, now: int, *, was_set: bool) -> None:
        """The monitor starts, or its clock was set: what was said before is old."""
        self._said.clear()
        self._counted.clear()
        self._values = {key: key[0].resume(value, now, was_set) for key, value in self._values.items()}

    def get(self, kind: Kind[_Value], check: Check) -> _Value:
        value: _Value = self._values[kind, check]
        return value

    def set(self, kind: Kind[_Value], check: Check, value: _Value) -> None:
        self._values[kind, check] = value

    def hear(self, check: Check, found: Found) -> None:
        """An indexer was asked how far it is."""
        self._said.pop(check, None)
        if isinstance(found, Blocks):
            self._said[check] = found.position
            if (COVERAGE, check) in self._values:
                self.end_look(check, self.get(COVERAGE, check))

    def position(self, check: Check) -> int | None:
        """What the indexer's last probe said; None if that was nothing."""
        return self._said.get(check)

    def end_look(self, check: Check, found: Coverage) -> None:
        """Keep what a look found, as far as it holds at the position that was said last."""
        said = self._said.get(check)
        self.set(COVERAGE, check, found if said is None else follow_position(found, said))

    def count_entries(self, node: Check, entries: int) -> None:
        """So many final entries are listed; the node's next answer is compared with that."""
        self._counted[node] = entries

    def hear_node(self, node: Check, found: Found, now: int, *, are_current: bool) -> None:
        """A node, or the indexer beside it, was probed; ``are_current`` says whether both rows are, but for what is
        known of the list."""
        if (NODE_GAP, node) not in self._values:
            return
        known = self.get(NODE_GAP, node)
        known = known if are_current else doubt(known)
        if isinstance(found, Indexes) and node in self._counted:
            known = read_gap(known, self._counted.pop(node), found.head, now, are_current=are_current)
        self.set(NODE_GAP, node, known)

    def gaps(self, check: Check) -> Gaps:
        """What the row of this check is judged by (S18, S20, S21)."""
        each = (kind.gaps(value) for kind, value in self._of(check))
        return Gaps(*map(sum, zip(astuple(Gaps()), *map(astuple, each), strict=True)))

    def describe_gaps(self, check: Check) -> str:
        return "; ".join(filter(None, (kind.describe(value) for kind, value in self._of(check))))

    def __contains__(self, check: Check) -> bool:
        return bool(self._of(check))

    def documents(self) -> dict[str, bytes]:
        """All that is to be in the store; what did not change is the very same bytes."""
        values = {kind.name_document(check): value for (kind, check), value in self._values.items()}
        for name, value in values.items():
            if name not in self._encoded or self._encoded[name][0] is not value:
                self._encoded[name] = value, msgspec.json.encode(value)
        return {name: self._encoded[name][1] for name in values}

    def _of(self, check: Check) -> list[tuple[Kind[Any], Any]]:
        return [(kind, self._values[kind, check]) for kind in KINDS if (kind, check) in self._values]
