"""Documents that break a clause each, and which one; and documents by which a clause cannot be seen."""

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


def edits(document: str, change: Callable[[Json], object]) -> Edit:
    """A change of the live report, or of the history."""

    def edit(live: Json, history: Json) -> None:
        change({"live": live, "history": history}[document])

    return edit


def without(document: str, field: str) -> Edit:
    return edits(document, lambda found: found.pop(field))


def top(document: str, **fields: object) -> Edit:
    return edits(document, lambda found: found.update(fields))


def doubled(document: str, rows: str) -> Edit:
    return edits(document, lambda found: found[rows].append(dict(found[rows][-1])))


def a_bucket_more(_live: Json, history: Json) -> None:
    row(history, "indexer", 1)["buckets"] += "-"


def from_not_aligned(_live: Json, history: Json) -> None:
    history["from"] = history["from"].replace(":00Z", ":30Z")


def uptime_in_the_4th_decimal(_live: Json, history: Json) -> None:
    shares = row(history, "indexer", 1)["uptime"]
    shares["14d"] = round(shares["14d"] + 0.0001, 4)


def uptime_of_all_days(_live: Json, history: Json) -> None:
    shares = row(history, "indexer", 1)["uptime"]
    assert shares["24h"] != shares["14d"]
    shares["24h"] = shares["14d"]


def uptime(service: str, chain_id: int, share: float | None) -> Edit:
    return lambda _live, history: row(history, service, chain_id)["uptime"].update({"24h": share})


def seen_so_far(buckets: str, uptime: float | None, *services: str) -> Edit:
    """Every row has had these buckets; if services are named, there are no others."""

    def edit(live: Json, history: Json) -> None:
        for document, rows in ((live, "checks"), (history, "rows")):
            document[rows] = [each for each in document[rows] if not services or each["service"] in services]
        for each in history["rows"]:
            each.update(buckets=buckets, uptime=dict.fromkeys(each["uptime"], uptime))
        to_at = parse_instant(history["to"].replace("Z", ".000Z"))
        history["from"] = format_instant(to_at - (len(buckets) - 1) * 300_000).replace(".000Z", "Z")

    return edit


def all_rows(status: str, reason: str, *but: str) -> Edit:
    """Every row has this status, and nothing is known; but for rows of a status."""

    def edit(live: Json, _history: Json) -> None:
        for each in live["checks"]:
            if each["status"] not in but:
                nothing = dict.fromkeys(("observedAt", "lastSuccessAt", "expiresAt"))
                each.update(nothing, status=status, reason=reason, metrics={})

    return edit


def only_current(_live: Json, history: Json) -> None:
    same = row(history, "indexer", 1)
    same.update(buckets="c" * len(same["buckets"]), uptime=dict.fromkeys(same["uptime"], 1.0))


def no_rows(live: Json, history: Json) -> None:
    live["checks"], history["rows"] = [], []


def later(instant: str, by_s: int) -> str:
    return format_instant(parse_instant(instant) + by_s * 1000)


def expires_when_observed(live: Json, _history: Json) -> None:
    same = row(live, "indexer", 1)
    same["expiresAt"] = same["observedAt"]
    same["metrics"].update(views=3, agreeing=2)


LONG_AGO: Final = "2026-11-01T00:00:00.000Z"
BROKEN_DOCUMENTS: Final[dict[str, tuple[Edit, str]]] = {
    "live without schemaVersion": (without("live", "schemaVersion"), "R1"),
    "no row in either": (no_rows, "R1"),
    "row with a field more": (sets("indexer", 1, colour="blue"), "H2 R2"),
    "own service of a name that is none": (own_service("Oracle 1", -1), "R14"),
    "own service before the five": (own_service("oracle", 0), "R12"),
    "current 151 blocks behind on Ethereum": (metrics("indexer", 1, position=0, head=151), "S3"),
    "row twice": (doubled("live", "checks"), "H2 R1"),
    "February 30th": (sets("ppoi", 137, lastSuccessAt="2026-02-30T00:00:00.000Z"), "R4"),
    "head below 0": (metrics("indexer", 1, head=-1), "R10 R11"),
    "current although unreachable": (
        sets("broadcasters", 137, reason="unreachable", status="unmonitored", observedAt=None),
        "S1",
    ),
    "unmonitored for want of an observation": (sets("hosted-indexer", 1, reason="no-observation"), "S12"),
    "chainId 0": (renamed_chain(0), "R3"),
    "current without observedAt": (sets("indexer", 1, observedAt=None, lastSuccessAt=None), "R5"),
    "current, last success long ago": (sets("indexer", 1, lastSuccessAt=LONG_AGO), "R6"),
    "expires much later than others": (sets("indexer", 1, expiresAt="2031-01-01T00:00:00.000Z"), "R7"),
    "failed row filled with 0": (sets("ppoi", 137, metrics={"position": 0, "head": 0}), "R8"),
    "metrics null": (sets("indexer", 137, metrics=None), "R13 R8"),
    "responding above monitored": (metrics("broadcasters", 1, responding=6), "R9"),
    "current but behind": (sets("indexer", 1, reason="behind"), "S4"),
    "ppoi node at its head is degraded": (sets("ppoi", 1, status="degraded", reason="behind"), "S7"),
    "ppoi node that trails is current and behind": (
        sets("ppoi", 1, reason="behind", metrics={"position": 40, "head": 41}),
        "S8",
    ),
    "ppoi node that lacks entries is current": (sets("ppoi", 1, reason="inconsistent"), "S21"),
    "all broadcasters are degraded": (metrics("broadcasters", 1, responding=5), "S10"),
    "messaging without a peer": (metrics("messaging", None, peers=0), "S11"),
    "broadcasters with a reference": (sets("broadcasters", 137, reason="incompatible-reference"), "S13"),
    "current although incomplete": (sets("indexer", 1, reason="incomplete"), "S18"),
    "current although not everywhere": (
        sets("indexer", 1, reason="not-everywhere", metrics={"position": 40, "head": 41, "views": 4, "agreeing": 2}),
        "W4",
    ),
    "of three places, and expires when it was observed": (expires_when_observed, "W5"),
    "more places agree than watch": (metrics("indexer", 1, views=3, agreeing=4), "W7"),
    "unknown, not configured": (sets("broadcasters", 137, reason="not-configured"), "S14"),
    "history without from": (without("history", "from"), "H1"),
    "history in another order": (edits("history", lambda history: history["rows"].reverse()), "H2"),
    "history a bucket too long": (a_bucket_more, "H3"),
    "from not aligned": (from_not_aligned, "H4"),
    "uptime wrong in the 4th decimal": (uptime_in_the_4th_decimal, "H9"),
    "uptime null of 289 known buckets": (uptime("indexer", 1, None), "H9"),
    "uptime 0 of no known bucket": (uptime("indexer", 137, 0), "H10"),
    "uptime 1 of degraded buckets": (uptime("broadcasters", 1, 1), "H11"),
    "uptime of a day is that of all days": (uptime_of_all_days, "H12"),
}

_OF_ROWS: Final = "R4 R6 R9 R10 R11 R13 S1 S3 S7 S10 S11 S13"
# Documents, and the clauses that these alone could not have broken, though the whole documents could.
POOR_DOCUMENTS: Final[dict[str, tuple[Edit, str]]] = {
    "a row of 20 good buckets": (
        seen_so_far("c" * 20, 1, "messaging"),
        "R11 R12 R13 S1 S3 S7 S10 S12 S13 S14 H10 H11 H12",
    ),
    "20 buckets, 10 of them good": (seen_so_far("cd" * 10, 0.5), "H10 H12"),
    "11 buckets": (seen_so_far("c" * 10 + "k", None), "H9 H11 H12"),
    "no row with a change of its uptime": (only_current, "H12"),
    "no row that was observed": (all_rows("unknown", "no-observation", "unmonitored"), _OF_ROWS),
    "no row that was observed, and none unmonitored": (all_rows("unknown", "no-observation"), f"{_OF_ROWS} R5 S14"),
    "no row that is monitored": (all_rows("unmonitored", "not-configured"), f"{_OF_ROWS} S12"),
    "no row": (no_rows, f"{_OF_ROWS} R2 R3 R5 R7 R8 R12 S12 S14 H3 H5 H9 H10 H11 H12"),
}
