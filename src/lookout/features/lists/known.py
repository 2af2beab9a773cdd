"""What is known of indexers' lists: beside the chain's logs (S17 to S19), of their running hashes (S20), and beside a
ppoi node (S21)."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct

from lookout.core.model import Blocks, Check, Found, Gaps, Indexes
from lookout.features.lists.rules import coverage as coverages
from lookout.features.lists.rules import links
from lookout.features.lists.rules.coverage import Coverage, describe_gaps, follow_position, gaps_of
from lookout.features.lists.rules.links import Links, confirmed_breaks, describe_breaks
from lookout.features.lists.rules.node_gap import NodeGap, confirmed_gap, describe_gap, doubt, read_gap
from lookout.features.lists.stored import StoredLists, encode_known, name_known


class _OfSubject(Protocol):
    @property
    def subject(self) -> str: ...


_Known = TypeVar("_Known", bound=_OfSubject)
Encoded = dict[str, tuple[Struct, bytes]]


class Subjects(NamedTuple):
    """Which lists are read, each by a fingerprint of what it is: of checks that have the tables ``complete`` and
    ``links``, and of the ppoi node's."""

    coverages: Mapping[Check, str] = {}
    links: Mapping[Check, str] = {}
    nodes: Mapping[Check, str] = {}


class Known:
    """Of every check whose list is read. All calls are made on the event loop."""

    def __init__(self, kept: StoredLists) -> None:
        self._coverages = dict(kept.coverages)
        self._links = dict(kept.links)
        self._nodes = dict(kept.nodes)
        self._counted: dict[Check, int] = {}  # entries, of nodes that have not answered since
        self._said: dict[Check, int] = {}  # positions, of indexers whose last probe said one
        self._encoded: Encoded = {}

    def follow(self, subjects: Subjects, now: int) -> None:
        """Read these from now on. What is known of another subject is forgotten."""
        self._coverages = _keep(self._coverages, subjects.coverages, lambda of: Coverage(subject=of, began_at=now))
        self._links = _keep(self._links, subjects.links, lambda of: Links(subject=of))
        self._nodes = _keep(self._nodes, subjects.nodes, NodeGap)

    def restart(self, now: int) -> None:
        """The monitor starts, or its clock was set: what was said before is old."""
        self._said.clear()
        self._counted.clear()
        self._coverages = {check: coverages.resume(known, now) for check, known in self._coverages.items()}
        self._links = {check: links.resume(known, now) for check, known in self._links.items()}

    def set_clock(self) -> None:
        self._nodes = {check: doubt(known) for check, known in self._nodes.items()}

    def hear(self, check: Check, found: Found) -> None:
        """An indexer was asked how far it is."""
        self._said.pop(check, None)
        if isinstance(found, Blocks):
            self._said[check] = found.position
            if check in self._coverages:
                self._coverages[check] = follow_position(self._coverages[check], found.position)

    def position(self, check: Check) -> int | None:
        """What the indexer's last probe said; None if that was nothing."""
        return self._said.get(check)

    def coverage(self, check: Check) -> Coverage:
        return self._coverages[check]

    def end_look(self, check: Check, coverage: Coverage) -> None:
        """Keep what a look found, as far as it holds at the position that was said meanwhile."""
        said = self._said.get(check)
        self._coverages[check] = coverage if said is None else follow_position(coverage, said)

    def links(self, check: Check) -> Links:
        return self._links[check]

    def set_links(self, check: Check, known: Links) -> None:
        self._links[check] = known

    def node(self, check: Check) -> NodeGap:
        return self._nodes[check]

    def count_entries(self, node: Check, entries: int) -> None:
        """So many final entries are listed; the node's next answer is compared with that."""
        self._counted[node] = entries

    def hear_node(self, node: Check, found: Found, now: int, *, are_current: bool) -> None:
        """A node, or the indexer beside it, was probed; ``are_current`` says whether both rows are, but for what is
        known of the list."""
        if node not in self._nodes:
            return
        known = self._nodes[node] if are_current else doubt(self._nodes[node])
        if isinstance(found, Indexes) and node in self._counted:
            known = read_gap(known, self._counted.pop(node), found.head, now, are_current=are_current)
        self._nodes[node] = known

    def gaps(self, check: Check) -> Gaps:
        """What the row of this check is judged by (S18, S20, S21)."""
        compared = gaps_of(self._coverages[check]) if check in self._coverages else Gaps()
        breaks = len(confirmed_breaks(self._links[check])) if check in self._links else 0
        gap = confirmed_gap(self._nodes[check]) if check in self._nodes else 0
        return Gaps(compared.missing, compared.extra, breaks, gap)

    def describe_gaps(self, check: Check) -> str:
        parts = (
            describe_gaps(self._coverages[check]) if check in self._coverages else "",
            describe_breaks(self._links[check]) if check in self._links else "",
            describe_gap(self._nodes[check]) if check in self._nodes else "",
        )
        return "; ".join(filter(None, parts))

    def __contains__(self, check: Check) -> bool:
        return check in self._coverages or check in self._links or check in self._nodes

    def documents(self) -> dict[str, bytes]:
        """All that is to be in the store; what did not change is the very same bytes."""
        known = {
            name_known(check, value): value
            for values in (self._coverages, self._links, self._nodes)
            for check, value in values.items()
        }
        for name, value in known.items():
            if name not in self._encoded or self._encoded[name][0] is not value:
                self._encoded[name] = value, encode_known(value)
        return {name: self._encoded[name][1] for name in known}


def _keep(
    known: Mapping[Check, _Known], subjects: Mapping[Check, str], make: Callable[[str], _Known]
) -> dict[Check, _Known]:
    before = ((check, known.get(check), subject) for check, subject in subjects.items())
    return {check: value if value and value.subject == subject else make(subject) for check, value, subject in before}
