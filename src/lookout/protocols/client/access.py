"""How a third party is reached."""

from typing import Final

from msgspec import field

from lookout.base.setting_types import CaFile, Headers, ProxyUrl, Table


class AccessTable(Table, frozen=True, kw_only=True):
    """The keys that every table with an address of a third party has. ``ca_file`` is the certificates of that file, as
    they were when the configuration was read: so a reload notices that they changed."""

    headers: Headers = field(default_factory=dict)
    ca_file: CaFile = ""
    proxy: ProxyUrl = ""


DIRECT: Final = AccessTable()
