"""The tables of the configuration that name sources."""

from lookout.base.setting_types import ChainId, Natural, Url
from lookout.protocols.client.request import AccessTable


class SourceTable(AccessTable, frozen=True):
    """A table of the configuration that names a source."""

    def address(self) -> str:
        """The address that is asked."""
        raise NotImplementedError

    def chain_ids(self) -> tuple[int | None, ...]:
        """The chains for which it gives its service a row; None is the row without a chain."""
        return (None,)

    def by_source(self) -> "tuple[SourceTable, ...]":
        """The settings of the sources that are built from it."""
        return (self,)


class KindTable(SourceTable, frozen=True):
    """A table whose ``kind`` is a protocol's name. The service decides which of these keys it has: ``chain`` if it
    has a row per chain, ``confirmations`` if its position is compared with the chain's head."""

    chain: ChainId | None
    kind: str
    url: Url
    confirmations: Natural = 0

    def address(self) -> str:
        return self.url

    def chain_ids(self) -> tuple[int | None, ...]:
        return (self.chain,)
