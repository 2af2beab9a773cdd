"""What a server counts, as plain numbers: they are made into metrics when those are read."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

CODES: Final = (200, 204, 304, 400, 404, 405, 429, 503)
ENDPOINTS: Final = ("live", "history")
ROUTES: Final = (*ENDPOINTS, "other")
Closed = Literal["stalled", "crowded"]  # why a connection was closed


@dataclass(slots=True)
class RequestCount:
    """A number of requests. It is looked up once, and then only added to."""

    number: int = 0


class Counts:
    def __init__(self) -> None:
        self.tallies = {(route, code): RequestCount() for route in ROUTES for code in CODES}
        self.closed: dict[Closed, int] = dict.fromkeys(get_args(Closed), 0)
        self.connections = 0
        self.store_errors = 0

    @property
    def requests(self) -> dict[tuple[str, int], int]:
        """By route and code."""
        return {key: tally.number for key, tally in self.tallies.items()}
