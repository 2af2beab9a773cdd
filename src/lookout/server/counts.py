"""What a server counts, as plain numbers: they are made into metrics when those are read."""

from typing import Final, Literal, get_args

CODES: Final = (200, 204, 304, 400, 404, 405, 429, 503)
ENDPOINTS: Final = ("live", "history")
ROUTES: Final = (*ENDPOINTS, "other")
Closed = Literal["stalled", "crowded"]  # why a connection was closed


class Counts:
    def __init__(self) -> None:
        self.requests = {(route, code): 0 for route in ROUTES for code in CODES}
        self.closed: dict[Closed, int] = dict.fromkeys(get_args(Closed), 0)
        self.connections = 0
        self.store_errors = 0
