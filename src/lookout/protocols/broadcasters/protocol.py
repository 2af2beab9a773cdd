"""The protocol of broadcasters."""

from typing import Final

from lookout.core.model import Members
from lookout.protocols.broadcasters.seen import SeenBroadcasters
from lookout.protocols.broadcasters.table import BroadcastersTable
from lookout.protocols.protocol import OwnTableProtocol
from lookout.protocols.source import Source


def _sources(service: str, settings: BroadcastersTable, seen: SeenBroadcasters) -> tuple[Source, ...]:
    # What checks signatures takes 7 MB, and servers, which read the configuration too, do without it.
    from lookout.protocols.broadcasters.source import RelayBroadcasters, StoreBroadcasters

    listen = StoreBroadcasters if settings.via == "store" else RelayBroadcasters
    return tuple(listen(service, each, seen) for each in settings.by_source())


BROADCASTERS: Final = OwnTableProtocol("broadcasters", Members, BroadcastersTable, _sources)
