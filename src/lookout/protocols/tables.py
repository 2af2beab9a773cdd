"""The tables of the configuration that name what is watched."""

from lookout.base.setting_types import ChainId, Natural, Url
from lookout.protocols.client.request import AccessTable


class SourceTable(AccessTable, frozen=True):
    """A table of the configuration that names what is watched."""

    def address(self) -> str:
        """Where it is asked."""
        raise NotImplementedError

    def chain_ids(self) -> tuple[int | None, ...]:
        """The chains that it has a row of its service for; None is the row of no chain."""
        return (None,)

    def by_source(self) -> "tuple[SourceTable, ...]":
        """The settings of each source that is built of it."""
        return (self,)


class KindTable(SourceTable, frozen=True):
    """A table whose ``kind`` is a protocol's name. The service decides which of these keys it has: ``chain`` where it
    has a row for each chain, ``confirmations`` where its position is compared with the chain's head."""

    chain: ChainId | None
    kind: str
    url: Url
    confirmations: Natural = 0

    def address(self) -> str:
        return self.url

    def chain_ids(self) -> tuple[int | None, ...]:
        return (self.chain,)
