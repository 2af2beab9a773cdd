"""Deployments in situations that people open the page in: axe looks at each, and ``tools.gallery`` takes pictures."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, NamedTuple

from lookout.base.clock import format_instant, parse_instant
from lookout.base.known_chains import KNOWN_CHAINS
from tests.browser.pages import BUCKET, LAUNCH, Json, Site, a_check, a_history, a_live_report, now_ms, store
from tests.builders import MINUTE, SECOND
from tests.integration.served import a_server

LAUNCH_CHAINS: Final = (1, 42161, 137, 56, 11155111)
DESKTOP: Final = {"viewport": {"width": 1280, "height": 900}}
PHONE: Final = {"viewport": {"width": 390, "height": 844}}
CHARACTERS: Final = {"catching-up": "k", "degraded": "d", "unavailable": "u", "unknown": "?", "unmonitored": "."}
PER_CHAIN: Final = ("ppoi", "broadcasters", "indexer", "hosted-indexer")


class Deployment(NamedTuple):
    """What its monitor published, and the tables of its configuration."""

    checks: list[Json]
    tables: str
    generated_at: int | None = None


class Scene(NamedTuple):
    """A deployment, seen with these options of a browser; ``headline`` is what is to be understood first."""

    deployment: str
    headline: str | re.Pattern[str]
    options: dict[str, Any] = DESKTOP
    media: Literal["screen", "print"] = "screen"
    address: str = ""


def rows(
    chains: Iterable[int] = LAUNCH_CHAINS, changes: dict[tuple[str, int | None], Json] | None = None
) -> list[Json]:
    """All five services on these chains, well but for the changes."""
    position = {"position": 25_799_985, "head": 25_799_991}
    well: dict[str, Json] = {
        "messaging": {"reason": "responding", "metrics": {"peers": 13}},
        "broadcasters": {"reason": "responding", "metrics": {"responding": 7, "monitored": 7}},
        "ppoi": {"metrics": {"position": 203_718, "head": 203_718}},
        "indexer": {"metrics": position},
        "hosted-indexer": {"metrics": {"position": 25_799_990, "head": 25_799_991}},
    }
    asked = [("messaging", None), *((service, chain_id) for service in PER_CHAIN for chain_id in sorted(chains))]
    changed = changes or {}
    return [a_check("current", *check, **well[check[0]]) | changed.get(check, {}) for check in asked]


def bad(status: str, reason: str, *, answered_ago_ms: int | None = None, **metrics: int) -> Json:
    """The fields of a row in trouble."""
    seen_at = now_ms() - 9 * SECOND
    known = status in ("catching-up", "degraded", "unavailable")
    answered_at = seen_at if answered_ago_ms is None else now_ms() - answered_ago_ms
    return {
        "status": status,
        "reason": reason,
        "observedAt": format_instant(seen_at),
        "lastSuccessAt": format_instant(answered_at),
        "expiresAt": format_instant(seen_at + 150 * SECOND) if known else None,
        "metrics": metrics,
    }


UNWATCHED: Final[Json] = {
    "status": "unmonitored",
    "reason": "not-configured",
    "observedAt": None,
    "lastSuccessAt": None,
    "expiresAt": None,
    "metrics": {},
}


def chain_tables(chains: Iterable[int]) -> str:
    named = (
        f"[[chains]]\nid = {each}\n"
        + ("" if each in KNOWN_CHAINS else f'name = "Network {each}"\nblock_time_s = 2\n')
        + 'rpc = ["http://127.0.0.1:1"]\n'
        for each in chains
    )
    return "".join(named)


def mixed() -> list[Json]:
    """Some of each trouble at once."""
    return rows(
        changes={
            ("indexer", 137): bad("unavailable", "unreachable", answered_ago_ms=17 * MINUTE),
            ("indexer", 42161): bad("catching-up", "behind", position=484_835_070, head=484_836_136),
            ("broadcasters", 56): bad("degraded", "partial-coverage", responding=4, monitored=5),
            ("ppoi", 11155111): bad("unknown", "no-observation", answered_ago_ms=95 * MINUTE),
            ("hosted-indexer", 11155111): UNWATCHED,
        }
    )


def deployments() -> dict[str, Deployment]:
    no_hosted: dict[tuple[str, int | None], Json] = {("hosted-indexer", 11155111): UNWATCHED}
    long_ago = now_ms() - 11 * MINUTE
    old = {"observedAt": format_instant(long_ago), "expiresAt": format_instant(long_ago + 150 * SECOND)}
    down = bad("unavailable", "unreachable", answered_ago_ms=26 * MINUTE)
    first = bad("unknown", "unreachable", answered_ago_ms=48 * SECOND)
    forty = [*range(1001, 1036), 1, 10, 56, 137, 8453]
    indexer_only = '[page]\ntitle = "Acorn Wallet"\nshow_unmonitored = false\n'
    named = '[page]\ntitle = "Acorn Wallet"\noperator = "Acorn Foundation"\ncontact = "status@acorn.example"\n'
    return {
        "launch": Deployment(rows(changes=no_hosted), LAUNCH),
        "base": Deployment(
            rows((8453,), {("ppoi", 8453): UNWATCHED, ("hosted-indexer", 8453): UNWATCHED}),
            chain_tables((8453,)) + named,
        ),
        "one-red": Deployment(
            rows(
                changes=no_hosted
                | {("broadcasters", 137): bad("unavailable", "unreachable", answered_ago_ms=5 * MINUTE)}
            ),
            LAUNCH,
        ),
        "indexer-only": Deployment(
            [row if row["service"] == "indexer" else row | UNWATCHED for row in rows((1,))],
            chain_tables((1,)) + indexer_only,
        ),
        "all-down": Deployment(
            [row | (UNWATCHED if no_hosted.get((row["service"], row["chainId"])) else down) for row in rows()], LAUNCH
        ),
        "first-minute": Deployment(
            rows(changes=no_hosted | {("broadcasters", 137): first, ("indexer", 137): first}), LAUNCH
        ),
        "dead": Deployment([row | old for row in rows()], LAUNCH, generated_at=long_ago),
        "forty": Deployment(
            rows(
                forty,
                {
                    ("indexer", 1007): bad("catching-up", "behind", position=1_000, head=4_000),
                    ("broadcasters", 8453): bad("unavailable", "unreachable", answered_ago_ms=5 * MINUTE),
                },
            ),
            chain_tables(forty),
        ),
        "mixed": Deployment(mixed(), LAUNCH),
        "named": Deployment(mixed(), LAUNCH + named),
    }


# With marks around what is Latin, so that it does not turn the sentence around itself.
AR_HEADLINE: Final = re.compile("^رُصدت مشكلات: .*Polygon.*BNB Smart Chain.*Arbitrum One")
MIXED_HEADLINE: Final = "Problems seen: Indexer on Polygon, Broadcasters on BNB Smart Chain, Indexer on Arbitrum One"
SCENES: Final = {
    "launch": Scene("launch", "No problem seen"),
    "base-alone": Scene("base", "No problem seen; 3 of 5 are watched"),
    "five-chains-one-red": Scene("one-red", "Problem seen: Broadcasters on Polygon"),
    "indexer-only": Scene("indexer-only", "No problem seen; 1 of 5 is watched"),
    "everything-down": Scene("all-down", "No watched service gives a usable answer"),
    "first-minute": Scene("first-minute", "Not known, trying again: Broadcasters on Polygon, Indexer on Polygon"),
    "monitor-dead": Scene("dead", re.compile("^Nothing is known now: these figures are old, from ")),
    "forty-chains": Scene("forty", "Problems seen: Broadcasters on Base, Indexer on Network 1007"),
    "by-service": Scene("mixed", MIXED_HEADLINE, address="#by=service"),
    "phone": Scene("mixed", MIXED_HEADLINE, PHONE),
    "dark": Scene("mixed", MIXED_HEADLINE, DESKTOP | {"color_scheme": "dark"}),
    "phone-dark": Scene("mixed", MIXED_HEADLINE, PHONE | {"color_scheme": "dark"}),
    "arabic": Scene("mixed", AR_HEADLINE, DESKTOP | {"locale": "ar-EG"}),
    "arabic-phone": Scene("mixed", AR_HEADLINE, PHONE | {"locale": "ar"}),
    "german": Scene("mixed", re.compile("^Probleme festgestellt: Indexer auf Polygon"), DESKTOP | {"locale": "de-AT"}),
    "chinese": Scene("mixed", re.compile("^发现问题"), DESKTOP | {"locale": "zh-CN"}),
    "spanish-phone": Scene("mixed", re.compile("^Problemas detectados: Indexador en"), PHONE | {"locale": "es-MX"}),
    "no-javascript": Scene("mixed", "", DESKTOP | {"java_script_enabled": False}),
    "no-javascript-phone": Scene("mixed", "", PHONE | {"java_script_enabled": False}),
    "print": Scene("named", MIXED_HEADLINE, {"viewport": {"width": 760, "height": 1075}}, media="print"),
}


def a_past(checks: list[Json], generated_at: int | None) -> bytes:
    """A fortnight in which every row had some trouble, as random as it is always the same."""
    history = json.loads(a_history(checks, generated_at=generated_at))
    for row, check in zip(history["rows"], checks, strict=True):
        chance = Random(f"{row['service']} {row['chainId']}")
        buckets = list(row["buckets"])
        for _ in range(chance.randrange(1, 6)):
            begin, length = chance.randrange(len(buckets) - 30), chance.choice((1, 1, 2, 3, 12))
            kinds = "kkduu?" if "position" in check["metrics"] else "dduu?"  # what has no position is not behind
            buckets[begin : begin + length] = chance.choice(kinds) * length
        if check["status"] == "unmonitored":
            buckets = ["."] * len(buckets)
        now = CHARACTERS.get(check["status"], "c")
        lasted = _buckets_since(check["lastSuccessAt"]) if now in "u?" else 3
        buckets[-lasted:] = now * lasted
        row["buckets"] = "".join(buckets)
        row["uptime"] = {
            window: _uptime(buckets[-seconds * SECOND // BUCKET - 1 :]) for window, seconds in WINDOWS.items()
        }
    return json.dumps(history).encode()


def _buckets_since(instant: str) -> int:
    """With the one that fills."""
    return now_ms() // BUCKET - parse_instant(instant) // BUCKET + 1


WINDOWS: Final = {"24h": 86_400, "7d": 604_800, "14d": 1_209_600}


def _uptime(buckets: list[str]) -> float | None:
    known = [each for each in buckets if each in "ckdu"]
    return round(known.count("c") / len(known), 4) if len(known) >= 12 else None


@contextmanager
def a_site(folder: Path, name: str) -> Iterator[Site]:
    """A server with this deployment's documents."""
    deployment = deployments()[name]
    live = a_live_report(deployment.checks, generated_at=deployment.generated_at)
    store(folder, live, a_past(deployment.checks, deployment.generated_at))
    with a_server(folder, more=deployment.tables) as server:
        yield Site(server, folder)
