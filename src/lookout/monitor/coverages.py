"""What is known of each list that is compared with its chain, and of its indexer's position (S17 to S19)."""

from collections.abc import Mapping

from lookout.core.coverage import Coverage, describe_gaps, follow_position, gaps_of, resume
from lookout.core.model import NO_GAPS, Blocks, Check, Found, Gaps
from lookout.state.codec import encode_coverage, name_coverage


class Coverages:
    """Of every check whose list is compared. All calls are made on the event loop."""

    def __init__(self, stored: Mapping[Check, Coverage]) -> None:
        self._known = dict(stored)
        self._said: dict[Check, int] = {}  # positions, of indexers whose last probe said one
        self._lowest: dict[Check, int] = {}  # of the positions said since the look under way began
        self._looking: set[Check] = set()
        self._encoded: dict[Check, tuple[Coverage, bytes]] = {}

    def follow(self, subjects: Mapping[Check, str], now: int) -> None:
        """Compare these from now on. What is known of another subject is forgotten."""
        known = ((check, self._known.get(check), subject) for check, subject in subjects.items())
        self._known = {
            check: before if before and before.subject == subject else Coverage(subject=subject, began_at=now)
            for check, before, subject in known
        }
        self._said = {check: position for check, position in self._said.items() if check in subjects}

    def restart(self, now: int) -> None:
        """The monitor starts, or its clock was set: what was said before is old, and so is what a look under way will
        find."""
        self._said.clear()
        self._looking.clear()
        self._known = {check: resume(coverage, now) for check, coverage in self._known.items()}

    def hear(self, check: Check, found: Found) -> None:
        """An indexer was asked how far it is."""
        if check not in self._known:
            return
        if not isinstance(found, Blocks):
            self._said.pop(check, None)
            return
        self._said[check] = found.position
        self._lowest[check] = min(found.position, self._lowest.get(check, found.position))
        self._known[check] = follow_position(self._known[check], found.position)

    def position(self, check: Check) -> int | None:
        """What the indexer's last probe said; None if that was nothing."""
        return self._said.get(check)

    def known(self, check: Check) -> Coverage:
        return self._known[check]

    def begin_look(self, check: Check) -> None:
        self._looking.add(check)
        self._lowest.pop(check, None)

    def end_look(self, check: Check, coverage: Coverage) -> None:
        """Keep what a look found, as far as it holds at the positions that were said meanwhile."""
        if check not in self._looking:
            return
        lowest = self._lowest.get(check)
        self._known[check] = coverage if lowest is None else follow_position(coverage, lowest)

    def gaps(self, check: Check) -> Gaps:
        coverage = self._known.get(check)
        return NO_GAPS if coverage is None else gaps_of(coverage)

    def describe_gaps(self, check: Check) -> str:
        coverage = self._known.get(check)
        return "" if coverage is None else describe_gaps(coverage)

    def __contains__(self, check: Check) -> bool:
        return check in self._known

    def pieces(self) -> dict[str, bytes]:
        """All that is to be in the store; what did not change is the very same bytes."""
        for check, coverage in self._known.items():
            if check not in self._encoded or self._encoded[check][0] is not coverage:
                self._encoded[check] = coverage, encode_coverage(coverage)
        return {name_coverage(check): self._encoded[check][1] for check in self._known}
