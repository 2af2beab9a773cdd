"""What all witnesses see, in a monitor, in its store, and while a log is replayed; and which places differ or are
silent (W8)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from lookout.base.instants import Instant
from lookout.core.model import Check, Gaps, Row
from lookout.features.feature import Rehearsal
from lookout.features.witnesses.rules import combine, counts
from lookout.features.witnesses.settings import WitnessTable
from lookout.state.log import Event, Viewed

DOCUMENT: Final = "witnesses"
NAMED_AFTER_MS: Final = 60_000
"""From then on the public description names a dissent or a silence."""


class Views:
    """The newest views, by witness, of the monitored rows that it is asked about; a witness that was never heard has
    none."""

    def __init__(self, tables: tuple[WitnessTable, ...], monitored: frozenset[Check]) -> None:
        checks = sorted(monitored, key=str)
        self.asked = {table.name: dict.fromkeys(filter(table.watches, checks)) for table in tables}
        self.of: dict[str, dict[Check, Row]] = {table.name: {} for table in tables}

    def set(self, witness: str, row: Row) -> bool:
        """Whether this view of a row that the witness is asked about is a new one."""
        if row.check not in self.asked.get(witness, ()) or self.of[witness].get(row.check) == row:
            return False
        self.of[witness][row.check] = row
        return True

    def keep(self, is_kept: Callable[[str, Row], bool]) -> None:
        """Forget all other views, as if those rows were never heard of."""
        for witness, views in self.of.items():
            self.of[witness] = {check: row for check, row in views.items() if is_kept(witness, row)}

    def of_check(self, check: Check) -> list[Row | None]:
        """The views of all witnesses that may watch the check; None if never heard."""
        return [views.get(check) for witness, views in self.of.items() if check in self.asked[witness]]

    def combine(self, own: Row, gaps: Gaps, at: int) -> Row:
        return combine(own, gaps, self.of_check(own.check), at)


class Since(Struct, frozen=True, omit_defaults=True):
    """Since when a place has seen these rows otherwise than they are published, and since when it is silent."""

    differs: tuple[tuple[Check, Instant], ...] = ()
    silent: Instant | None = None


class Dissent(Struct, frozen=True):
    """A row as a place sees it: ``row`` is its view, which counts."""

    row: Row
    since_at: int


class Standing(Struct, frozen=True):
    """A place now. The name of the own one may be empty; an address of people's pages is empty if there is none."""

    name: str
    public_url: str
    is_own: bool
    differs: tuple[Dissent, ...]
    silent_since_at: int | None


def follow(since: Since, views: Iterable[Row], published: Mapping[Check, Row], at: int) -> Since:
    """After a publication of these rows: a place differs while its view counts and has another status, and is silent
    while none of its views counts."""
    counted = [view for view in views if counts(view, at)]
    before = dict(since.differs)
    differing = (view.check for view in counted if view.status != published[view.check].status)
    differs = tuple((check, before.get(check, at)) for check in differing)
    return Since(differs, None if counted else at if since.silent is None else since.silent)


class StoredWitness(Struct, frozen=True):
    """``address`` is a fingerprint: a witness at another address is another one."""

    address: str
    views: tuple[Row, ...]
    report_at: Instant | None = None
    """When the report was made from which they are."""


class StoredWitnesses(Struct, frozen=True):
    """By the witnesses' names; in ``since``, the own place's name is empty."""

    witnesses: dict[str, StoredWitness] = {}
    since: dict[str, Since] = {}


class ReplayedViews(Rehearsal):
    """After a start the log names all views that are known: the others are forgotten."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self.combine = views.combine

    def start(self, at: int) -> None:
        self._views.keep(lambda _witness, _row: False)

    def hear(self, event: Event) -> bool:
        if not isinstance(event, Viewed) or event.row.check not in self._views.asked.get(event.witness, ()):
            return False
        self._views.set(event.witness, event.row)
        return True
