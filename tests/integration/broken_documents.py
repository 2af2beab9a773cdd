"""Documents that break a clause each, and which one."""

from collections.abc import Callable
from typing import Final

from lookout.base.instants import format_instant, parse_instant
from tests.integration.planted import Edit, Json


def row(live: Json, service: str, chain_id: int | None) -> Json:
    rows = live.get("checks") or live["rows"]
    (same,) = (each for each in rows if (each["service"], each["chainId"]) == (service, chain_id))
    assert isinstance(same, dict)
    return same


def sets(service: str, chain_id: int | None, **fields: object) -> Edit:
    return lambda live, _history: row(live, service, chain_id).update(fields)


def metrics(service: str, chain_id: int | None, **fields: object) -> Edit:
    return lambda live, _history: row(live, service, chain_id)["metrics"].update(fields)


def renamed_chain(chain_id: object) -> Edit:
    def edit(live: Json, history: Json) -> None:
        for document in (live, history):
            row(document, "ppoi", 1)["chainId"] = chain_id

    return edit


def own_service(name: str, place: int) -> Edit:
    """The row at a place is one of the operator's own, in both documents."""

    def edit(live: Json, history: Json) -> None:
        for rows in (live["checks"], history["rows"]):
            rows[place]["service"] = name

    return edit


def add_own_row(live: Json, history: Json, service: str, chain_id: int | None) -> None:
    live["checks"].append(dict(row(live, "messaging", None), service=service, chainId=chain_id))
    history["rows"].append(dict(row(history, "messaging", None), service=service, chainId=chain_id))


def uptime(service: str, window: str, change: Callable[[float], object]) -> Edit:
    def edit(_live: Json, history: Json) -> None:
        told = row(history, service, None if service == "messaging" else 1)["uptime"]
        told[window] = change(told[window])

    return edit


def out_of_order(live: Json, history: Json) -> None:
    for rows in (live["checks"], history["rows"]):
        rows[1], rows[2] = rows[2], rows[1]


def edits(document: str, change: Callable[[Json], object]) -> Edit:
    """A change of the live report, or of the history."""

    def edit(live: Json, history: Json) -> None:
        change({"live": live, "history": history}[document])

    return edit


def without(document: str, field: str) -> Edit:
    return edits(document, lambda found: found.pop(field))


def top(document: str, **fields: object) -> Edit:
    return edits(document, lambda found: found.update(fields))


def row_without(document: str, field: str) -> Edit:
    return edits(document, lambda found: row(found, "indexer", 1).pop(field))


def doubled(document: str, rows: str) -> Edit:
    return edits(document, lambda found: found[rows].append(dict(found[rows][-1])))


def a_bucket_more(_live: Json, history: Json) -> None:
    row(history, "indexer", 1)["buckets"] += "-"


def from_not_aligned(_live: Json, history: Json) -> None:
    history["from"] = history["from"].replace(":00Z", ":30Z")


def failure_as_success(live: Json, _history: Json) -> None:
    same = row(live, "ppoi", 137)
    same["lastSuccessAt"] = same["observedAt"]


def no_rows(live: Json, history: Json) -> None:
    live["checks"], history["rows"] = [], []


def later(instant: str, by_s: int) -> str:
    return format_instant(parse_instant(instant) + by_s * 1000)


def lag(chain_id: int, blocks: int) -> Edit:
    """A healthy indexer of some chain, said to be current that far behind."""

    def edit(live: Json, history: Json) -> None:
        if chain_id != 1:
            for document in (live, history):
                row(document, "indexer", 137)["chainId"] = chain_id
        numbers = {"position": 10**7 - blocks, "head": 10**7}
        row(live, "indexer", chain_id).update({**row(live, "indexer", 1), "chainId": chain_id, "metrics": numbers})

    return edit


LONG_AGO: Final = "2026-11-01T00:00:00.000Z"
BROKEN_DOCUMENTS: Final[dict[str, tuple[Edit, str]]] = {
    "live without schemaVersion": (without("live", "schemaVersion"), "R1"),
    "no row in either": (no_rows, "R1"),
    "row with a field more": (sets("indexer", 1, colour="blue"), "H2 R2"),
    "own service of a name that is none": (own_service("Oracle 1", -1), "R14"),
    "own service before the five": (own_service("oracle", 0), "R12"),
    "current 151 blocks behind on Ethereum": (lag(1, 151), "S3"),
    "row that is no object": (edits("live", lambda live: live["checks"].append("indexer")), "R2"),
    "row twice": (doubled("live", "checks"), "H2 R1"),
    "February 30th": (sets("ppoi", 137, lastSuccessAt="2026-02-30T00:00:00.000Z"), "R4"),
    "head below 0": (metrics("indexer", 1, head=-1), "R10 R11"),
    "current although unreachable": (
        sets("broadcasters", 137, reason="unreachable", status="unmonitored", observedAt=None),
        "S1",
    ),
    "unmonitored for want of an observation": (sets("hosted-indexer", 1, reason="no-observation"), "S12"),
    "chainId 0": (renamed_chain(0), "R3"),
    "generatedAt with an offset": (top("live", generatedAt="2026-11-01T00:00:00.000+00:00"), "R1"),
    "current without observedAt": (sets("indexer", 1, observedAt=None, lastSuccessAt=None), "R5"),
    "current, last success long ago": (sets("indexer", 1, lastSuccessAt=LONG_AGO), "R6"),
    "failure as success": (failure_as_success, "R6"),
    "expires much later than others": (sets("indexer", 1, expiresAt="2031-01-01T00:00:00.000Z"), "R7"),
    "unknown with expiresAt": (sets("indexer", 137, expiresAt=LONG_AGO), "R7"),
    "failed row filled with 0": (sets("ppoi", 137, metrics={"position": 0, "head": 0}), "R8"),
    "metrics null": (sets("indexer", 137, metrics=None), "R13 R8"),
    "responding above monitored": (metrics("broadcasters", 1, responding=6), "R9"),
    "current without head": (sets("indexer", 1, metrics={"position": 1}), "R9"),
    "metric with a fraction": (metrics("messaging", None, peers=5.5), "R10"),
    "rows out of order": (out_of_order, "R12"),
    "current without any lag is catching up": (sets("indexer", 1, status="catching-up", reason="behind"), "S4"),
    "current but behind": (sets("indexer", 1, reason="behind"), "S4"),
    "ppoi node at its head is degraded": (sets("ppoi", 1, status="degraded", reason="behind"), "S7"),
    "all broadcasters are degraded": (metrics("broadcasters", 1, responding=5), "S10"),
    "messaging without a peer": (metrics("messaging", None, peers=0), "S11"),
    "broadcasters with a reference": (sets("broadcasters", 137, reason="incompatible-reference"), "S13"),
    "current although incomplete": (sets("indexer", 1, reason="incomplete"), "S18"),
    "unknown, not configured": (sets("broadcasters", 137, reason="not-configured"), "S14"),
    "history without from": (without("history", "from"), "H1"),
    "history generated to the second": (top("history", generatedAt="2026-11-01T00:00:00Z"), "H1"),
    "history in another order": (edits("history", lambda history: history["rows"].reverse()), "H2"),
    "history row without uptime": (row_without("history", "uptime"), "H2"),
    "history a bucket too long": (a_bucket_more, "H3"),
    "from not aligned": (from_not_aligned, "H4"),
    "uptime wrong in the 4th decimal": (
        uptime("indexer", "14d", lambda right: round(right + 0.0001, 4)),
        "H9 H10 H11 H12",
    ),
    "uptime null with many known buckets": (uptime("indexer", "24h", lambda _: None), "H9 H10 H11 H12"),
    "uptime 1 with a bucket that is not c": (uptime("indexer", "14d", lambda _: 1), "H9 H10 H11 H12"),
}
