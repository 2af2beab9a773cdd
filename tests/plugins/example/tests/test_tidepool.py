from lookout.protocols.api import Blocks, Found, Nothing
from lookout.protocols.conformance import assert_conforms

SETTINGS = {"url": "https://tidepool.example", "chain": 1, "pool": "north"}
GOOD: dict[bytes, Found] = {b'{"pools":{"north":{"block":17}}}': Blocks(17), b'{"pools":{}}': Nothing()}


def test_tidepool_conforms() -> None:
    assert_conforms("lookout_tidepool:TIDEPOOL", SETTINGS, good=GOOD)
