"""The services that are watched, each declared once.

What else is to be said of a service follows from these few facts: its rows and their order, how a probe of it is judged
and written to the observation log, its table in the configuration, whether it is compared with a chain's head, and what
alerts and metrics call it.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from lookout.base.registry import Registry
from lookout.core.model import Answer, Blocks, Check, Indexes, Members, Peers


class Service(Struct, frozen=True):
    """``answer`` is what a probe finds where all is well; the policy reads by it."""

    name: str
    answer: type[Answer]
    is_shared: bool = False
    """One row that is of no chain, and not one for each chain."""
    given_title: str = ""

    @property
    def title(self) -> str:
        """What people call it."""
        return self.given_title or self.name.replace("-", " ").capitalize()

    @property
    def needs_head(self) -> bool:
        """Whether its position is compared with the head of its chain."""
        return self.answer is Blocks

    @property
    def has_required_list(self) -> bool:
        """Whether a probe can find that the required list is missing (S13)."""
        return self.answer is Indexes

    def checks(self, chain_ids: Iterable[int]) -> tuple[Check, ...]:
        """Its rows, in the report's order."""
        if self.is_shared:
            return (Check(self.name, None),)
        return tuple(Check(self.name, chain_id) for chain_id in sorted(chain_ids))


# In the report's order (R12).
SERVICES: Final = Registry(
    Service("messaging", Peers, is_shared=True),
    Service("ppoi", Indexes, given_title="Private proof of innocence"),
    Service("broadcasters", Members),
    Service("indexer", Blocks),
    Service("hosted-indexer", Blocks),
)


def place_in_report(check: Check) -> tuple[int, int]:
    """What to sort checks by (R12); those of services that are declared no more come last."""
    names = SERVICES.names
    return names.index(check.service) if check.service in names else len(names), check.chain_id or 0


def all_checks(chain_ids: Iterable[int]) -> tuple[Check, ...]:
    """Every service on every chain, in the report's order (R3, R12)."""
    chain_ids = tuple(chain_ids)
    return tuple(check for service in SERVICES for check in service.checks(chain_ids))
