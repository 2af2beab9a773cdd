"""Documents for what other tools read: each builder gives something ordinary, and a test says what matters to it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from lookout.base.instants import format_instant, format_second
from lookout.public.picture import Names, Picture, take_picture
from lookout_reader import AboutNote
from lookout_reader.document import Check
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND
from tests.descriptions import an_about

Json = dict[str, Any]

BUCKET: Final = 5 * MINUTE
FULL: Final = 14 * DAY // BUCKET + 1
LIFETIME: Final = 150 * SECOND
NAMES: Final = Names("protocol", an_about())
NOTE: Final = AboutNote("7", "Maintenance", ("indexer",), (137,), NOON + HOUR, NOON + 3 * HOUR, NOON - HOUR)
HOSTILE: Final = """<b>&amp;"' ]]> \N{SNOWMAN}"""


def a_check(
    status: str,
    service: str = "indexer",
    chain_id: int | None = 1,
    *,
    seen_at: int = NOON,
    lifetime: int = LIFETIME,
) -> Json:
    known = status in ("current", "catching-up", "degraded", "unavailable")
    return {
        "service": service,
        "chainId": chain_id,
        "status": status,
        "reason": "synced",
        "observedAt": None if status == "unmonitored" else format_instant(seen_at),
        "lastSuccessAt": None,
        "expiresAt": format_instant(seen_at + lifetime) if known else None,
        "metrics": {},
    }


def all_current(*others: Json) -> list[Json]:
    """Every check of the mainnets, current but for these."""
    checks: dict[Check, Json] = {("messaging", None): a_check("current", "messaging", None)}
    for service in ("ppoi", "broadcasters", "indexer", "hosted-indexer"):
        checks |= {(service, chain_id): a_check("current", service, chain_id) for chain_id in (1, 56, 137, 42161)}
    return list((checks | {(other["service"], other["chainId"]): other for other in others}).values())


def a_report(*checks: object, at: int = NOON) -> bytes:
    return json.dumps({"schemaVersion": 1, "generatedAt": format_instant(at), "checks": checks}).encode()


def a_history(rows: Mapping[Check, str], to_at: int = NOON, **more: object) -> bytes:
    """The rows' characters; the last is that of the bucket that began at ``to_at``."""
    length = max(map(len, rows.values()), default=1)
    fields = {
        "schemaVersion": 1,
        "generatedAt": format_instant(to_at + MINUTE),
        "bucketSeconds": BUCKET // SECOND,
        "retentionDays": 14,
        "from": format_second(to_at - (length - 1) * BUCKET),
        "to": format_second(to_at),
        "rows": [
            {"service": service, "chainId": chain_id, "buckets": buckets, "uptime": {}}
            for (service, chain_id), buckets in rows.items()
        ],
    }
    return json.dumps(fields | more).encode()


def noted(*notes: AboutNote) -> Names:
    """The same deployment with these notes."""
    return NAMES._replace(about=replace(NAMES.about, notes=notes))


def a_picture(live: bytes, history: bytes | None = None, *, at: int = NOON, names: Names = NAMES) -> Picture:
    picture = take_picture(names.about, live, history, at, 0)
    assert picture is not None
    return picture
