"""What all witnesses see."""

from collections.abc import Callable, Iterator, Mapping

from lookout.core.model import Check, Gaps, Row
from lookout.features.witnesses.rules import combine
from lookout.features.witnesses.settings import WitnessTable

ViewsOf = Mapping[Check, Row]
"""The views of one witness: of every row that it was asked about since it was first heard; empty before that."""


class Views:
    """The newest views of each witness, of the monitored rows that it may watch."""

    def __init__(self, tables: tuple[WitnessTable, ...], monitored: frozenset[Check]) -> None:
        self._asked = {table.name: frozenset(check for check in monitored if table.watches(check)) for table in tables}
        self._views: dict[str, dict[Check, Row]] = {table.name: {} for table in tables}
        places = {
            check: tuple(self._views[name] for name, asked in self._asked.items() if check in asked)
            for check in monitored
        }
        self._of_check = {check: views for check, views in places.items() if views}

    def __iter__(self) -> Iterator[tuple[str, ViewsOf]]:
        return iter(self._views.items())

    def asked(self, witness: str) -> frozenset[Check]:
        return self._asked.get(witness, frozenset())

    def of(self, witness: str) -> ViewsOf:
        return self._views[witness]

    def set(self, witness: str, row: Row) -> bool:
        """Whether this view of a row that the witness is asked about is a new one."""
        if row.check not in self.asked(witness) or self._views[witness].get(row.check) == row:
            return False
        self._views[witness][row.check] = row
        return True

    def keep(self, is_kept: Callable[[str, Row], bool]) -> None:
        """Forget all other views, as if those rows were never heard of."""
        for witness, views in self._views.items():
            kept = {check: row for check, row in views.items() if is_kept(witness, row)}
            views.clear()
            views.update(kept)

    def of_check(self, check: Check) -> list[Row | None]:
        """The views of all witnesses that may watch the check; None if never heard."""
        return [views.get(check) for views in self._of_check.get(check, ())]

    def combine(self, own: Row, gaps: Gaps, at: int) -> Row:
        return combine(own, gaps, self.of_check(own.check), at)
