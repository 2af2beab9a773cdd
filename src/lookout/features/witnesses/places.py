"""Which places see a row otherwise than it is published, and which are silent (W8)."""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from lookout.base.instants import Instant
from lookout.core.model import Check, Row
from lookout.features.witnesses.rules import counts

NAMED_AFTER_MS: Final = 60_000
"""From then on the public description names a dissent or a silence."""


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
