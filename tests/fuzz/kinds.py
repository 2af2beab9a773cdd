"""Every kind of hostile input, by the name of its folder of kept cases."""

from typing import Final

from tests.fuzz.config import CONFIG
from tests.fuzz.crowds import CROWDS
from tests.fuzz.cuts import CUTS
from tests.fuzz.documents import DOCUMENTS
from tests.fuzz.edge import EDGE
from tests.fuzz.exhaustion import EXHAUSTION
from tests.fuzz.floods import FLOODS
from tests.fuzz.fuzzer import Kind
from tests.fuzz.logs import LOGS
from tests.fuzz.readers import READERS
from tests.fuzz.sources import SOURCES
from tests.fuzz.web import HTTP

KINDS: Final[dict[str, Kind]] = {
    "http": HTTP,
    "cuts": CUTS,
    "edge": EDGE,
    "crowds": CROWDS,
    "exhaustion": EXHAUSTION,
    "sources": SOURCES,
    "floods": FLOODS,
    "config": CONFIG,
    "logs": LOGS,
    "documents": DOCUMENTS,
    "readers": READERS,
}
