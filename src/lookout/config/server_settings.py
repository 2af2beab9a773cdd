"""What a server needs of a configuration. Its processes load this, and nothing of what reads a whole one."""

from msgspec import Struct

from lookout.config.tables import AdminTable, LogTable, ServerTable
from lookout.public.about import Description


class ServerSettings(Struct, frozen=True):
    """What a server needs of a configuration, and all of it that its processes ever hold."""

    protocol: str
    server: ServerTable
    admin: AdminTable
    log: LogTable
    description: Description
    store_url: str
    reads_as_writer: bool = False

    @property
    def store_key(self) -> str:
        return "store.url" if self.reads_as_writer else "store.read_url"
