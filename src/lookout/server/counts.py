"""What a server counts, as plain numbers: they are made into metrics when those are read."""

from typing import Final, Literal, get_args

CODES: Final = (200, 204, 304, 400, 404, 405, 429, 503)
ENDPOINTS: Final = ("live", "history")
ROUTES: Final = (*ENDPOINTS, "other")
Closed = Literal["stalled", "crowded"]  # why a connection was closed


class Tally:
    """A number that is looked up once, and then counts at the cost of an addition."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0


class Counts:
    def __init__(self) -> None:
        self.tallies = {(route, code): Tally() for route in ROUTES for code in CODES}
        self.closed: dict[Closed, int] = dict.fromkeys(get_args(Closed), 0)
        self.connections = 0
        self.store_errors = 0

    @property
    def requests(self) -> dict[tuple[str, int], int]:
        """By route and code."""
        return {key: tally.number for key, tally in self.tallies.items()}
