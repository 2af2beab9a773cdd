"""What the processes of a server did and know, in memory that they share: one of them can report on all."""

from typing import Final, Literal, NamedTuple, get_args

from lookout.server.shared_memory import SharedBytes

CODES: Final = (200, 204, 304, 400, 404, 405, 429, 503)
ENDPOINTS: Final = ("live", "history")
ROUTES: Final = (*ENDPOINTS, "other")
Closed = Literal["stalled", "crowded"]  # why the guard closed a connection
CLOSED: Final[tuple[Closed, ...]] = get_args(Closed)
_CELL: Final = {(route, code): r * len(CODES) + c for r, route in enumerate(ROUTES) for c, code in enumerate(CODES)}
_SEEN_MS, _GENERATED_AT, _STORE_ERRORS, _OPEN = range(len(_CELL), len(_CELL) + 4)
_CLOSED: Final = {reason: _OPEN + 1 + number for number, reason in enumerate(CLOSED)}
_CELLS: Final = len(_CELL) + 4 + len(_CLOSED)
_CELL_BYTES: Final = 8
_FORMAT: Final = "q"
# A process that has not been seen for so long is none any more; what it counted still counts.
_GONE_MS: Final = 5_000


class Totals(NamedTuple):
    """What all processes counted, those that are gone included."""

    requests: dict[tuple[str, int], int]  # by route and code
    store_errors: int
    generated_at: tuple[int | None, ...]  # of the live report that each present process serves
    connections: int  # of present processes
    closed: dict[Closed, int]


class Counts:
    """A row of numbers for each process; each writes only its own."""

    def __init__(self, processes: int) -> None:
        self.processes = processes
        self._rows = 2 * processes  # while one is being replaced there are two
        self._memory = SharedBytes(self._rows * _CELLS * _CELL_BYTES)

    def attach(self) -> "OwnCounts":
        """A row for this process, for as long as it lives."""
        return OwnCounts(self._row(self._memory.take_place(self._rows)))

    def summarize(self, now_ms: int) -> Totals:
        rows = [self._row(number) for number in range(self._rows)]
        present = [row for row in rows if row[_SEEN_MS] and now_ms - row[_SEEN_MS] < _GONE_MS]
        return Totals(
            {key: sum(row[cell] for row in rows) for key, cell in _CELL.items()},
            sum(row[_STORE_ERRORS] for row in rows),
            tuple(row[_GENERATED_AT] or None for row in present),
            sum(row[_OPEN] for row in present),
            {reason: sum(row[cell] for row in rows) for reason, cell in _CLOSED.items()},
        )

    def _row(self, number: int) -> memoryview:
        begin = number * _CELLS * _CELL_BYTES
        return self._memory.view[begin : begin + _CELLS * _CELL_BYTES].cast(_FORMAT)


class OwnCounts:
    """The row of one process."""

    def __init__(self, row: memoryview) -> None:
        self._row = row

    def count(self, route: str, http_code: int) -> None:
        self._row[_CELL[route, http_code]] += 1

    def mark_present(self, now_ms: int, generated_at: int | None) -> None:
        """This process is there at this instant, and serves a live report of that one."""
        self._row[_SEEN_MS] = now_ms
        self._row[_GENERATED_AT] = generated_at or 0

    def count_store_errors(self, store_errors: int) -> None:
        """So many more looks at the store failed. For one thread alone: of two that add at once, one would be lost."""
        self._row[_STORE_ERRORS] += store_errors

    def count_closed(self, reason: Closed) -> None:
        self._row[_CLOSED[reason]] += 1

    def set_open(self, connections: int) -> None:
        self._row[_OPEN] = connections
