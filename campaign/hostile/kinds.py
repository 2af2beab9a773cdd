"""Every kind of hostile input, by the name of its folder of kept cases."""

from typing import Final

from campaign.hostile.config import CONFIG
from campaign.hostile.crowds import CROWDS
from campaign.hostile.documents import DOCUMENTS
from campaign.hostile.edge import EDGE
from campaign.hostile.exhaustion import EXHAUSTION
from campaign.hostile.floods import FLOODS
from campaign.hostile.fuzzing import Kind
from campaign.hostile.logs import LOGS
from campaign.hostile.readers import READERS
from campaign.hostile.sources import SOURCES
from campaign.hostile.state import STATE
from campaign.hostile.web import HTTP

KINDS: Final[dict[str, Kind]] = {
    "http": HTTP,
    "edge": EDGE,
    "crowds": CROWDS,
    "exhaustion": EXHAUSTION,
    "sources": SOURCES,
    "floods": FLOODS,
    "config": CONFIG,
    "logs": LOGS,
    "state": STATE,
    "documents": DOCUMENTS,
    "readers": READERS,
}
