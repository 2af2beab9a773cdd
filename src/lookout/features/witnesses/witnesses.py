"""The feature: what the witnesses see, and the rows of all places together."""

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from lookout.base.problem import Problem
from lookout.core.model import Check
from lookout.core.services import Service
from lookout.features.feature import Feature, Host
from lookout.features.witnesses.places import Standing
from lookout.features.witnesses.settings import WitnessTable, check_witnesses, doubt_witnesses


class Witnesses(Feature):
    key = "witnesses"
    table: ClassVar[Any] = tuple[WitnessTable, ...]
    claimed = ("witnesses",)

    @classmethod
    def check(
        cls, table: tuple[WitnessTable, ...], monitored: frozenset[Check], services: tuple[Service, ...]
    ) -> Iterable[Problem]:
        return check_witnesses(table, services)

    @classmethod
    def warnings(cls, table: tuple[WitnessTable, ...], place: str) -> Iterable[Problem]:
        return doubt_witnesses(table, place)

    @classmethod
    def build(cls, table: tuple[WitnessTable, ...], _kept: Any, host: Host) -> Self:
        return cls(table, host)

    def __init__(self, tables: tuple[WitnessTable, ...], host: Host) -> None:
        self._tables = tables
        self._host = host

    def standings(self) -> tuple[Standing, ...]:
        """All places as of the last publication, the own one first; none if there are no witnesses."""
        return ()
