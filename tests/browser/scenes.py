"""Deployments in situations that people open the page in: axe looks at each, and ``tools.gallery`` takes pictures."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace
from playwright.sync_api import Page

from lookout.base.instants import format_instant, format_second, parse_instant
from lookout.public.about import PATH, DissentDescription, NoteDescription, PlaceDescription
from tests.browser.pages import BUCKET, LAUNCH, Json, Site, a_check, a_history, a_live_report, now_ms, store
from tests.builders import HOUR, MINUTE, SECOND
from tests.cases import text_of
from tests.descriptions import a_description
from tests.integration.served import LIVE, a_server
from tests.wait import until

LAUNCH_CHAINS: Final = (1, 42161, 137, 56, 11155111)
DESKTOP: Final = {"viewport": {"width": 1280, "height": 900}}
PHONE: Final = {"viewport": {"width": 390, "height": 844}}
CHARACTERS: Final = {"catching-up": "k", "degraded": "d", "unavailable": "u", "unknown": "?", "unmonitored": "."}
PER_CHAIN: Final = ("ppoi", "broadcasters", "indexer", "hosted-indexer")


class Deployment(NamedTuple):
    """What its monitor published, the tables of its configuration, and what its description has besides."""

    checks: list[Json]
    tables: str = LAUNCH
    generated_at: int | None = None
    described: dict[str, Any] | None = None
    is_new: bool = False


class Scene(NamedTuple):
    """A deployment, seen with these options of a browser; ``headline`` is what is to be understood first, after the
    device went offline or slept for an hour if so told."""

    deployment: str
    headline: str | re.Pattern[str]
    options: dict[str, Any] = DESKTOP
    media: Literal["screen", "print"] = "screen"
    address: str = ""
    forced_colors: bool = False
    then: Literal["", "offline", "asleep"] = ""


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


def five_problems() -> list[Json]:
    """Some of each trouble at once."""
    return rows(
        changes={
            ("indexer", 137): bad("unavailable", "unreachable", answered_ago_ms=17 * MINUTE),
            ("indexer", 42161): bad("catching-up", "behind", position=484_835_070, head=484_836_136),
            ("broadcasters", 56): bad("degraded", "partial-coverage", responding=4, monitored=5),
            ("ppoi", 1): bad("catching-up", "behind", position=203_700, head=203_718),
            ("ppoi", 11155111): bad("unknown", "no-observation", answered_ago_ms=95 * MINUTE),
            ("hosted-indexer", 11155111): UNWATCHED,
        }
    )


def a_note(text: str, begins_in_ms: int, chains: tuple[int, ...] = ()) -> NoteDescription:
    begins_at = now_ms() + begins_in_ms
    return NoteDescription(
        id=text,
        text=text,
        services=(),
        chains=chains,
        from_=format_second(begins_at),
        until=format_second(begins_at + 2 * HOUR),
        added_at=format_second(now_ms() - HOUR),
    )


def seen(at: int) -> Json:
    """The instants of rows that were seen last then."""
    return {
        "observedAt": format_instant(at),
        "lastSuccessAt": format_instant(at),
        "expiresAt": format_instant(at + 150 * SECOND),
    }


def places(dissenting: str, since: str) -> tuple[PlaceDescription, ...]:
    """Three of them, of which this one does not reach Polygon's indexer."""
    differs = (DissentDescription("indexer", 137, "unavailable", since),)
    return tuple(
        PlaceDescription(name=name, own=name == "Frankfurt", differs=differs if name == dissenting else ())
        for name in ("Frankfurt", "Singapore", "São Paulo")
    )


AGREED: Final[Json] = {"position": 25_799_985, "head": 25_799_991, "views": 3, "agreeing": 2}
OWN_SERVICES: Final = text_of("settings/own-services-alone.toml")


def deployments() -> dict[str, Deployment]:
    no_hosted: dict[tuple[str, int | None], Json] = {("hosted-indexer", 11155111): UNWATCHED}
    an_hour_ago, lately = now_ms() - HOUR, now_ms() - 101 * SECOND
    since = format_second(now_ms() - 20 * MINUTE)
    answering: Json = {"reason": "responding", "metrics": {}}
    own = [
        *(row | UNWATCHED for row in rows((1,))),
        a_check("current", "bundler", 1, **answering),
        a_check("current", "relayer", None) | bad("unavailable", "unreachable", answered_ago_ms=5 * MINUTE),
    ]
    named = '[page]\ntitle = "Acorn Wallet"\noperator = "Acorn Foundation"\ncontact = "status@acorn.example"\n'
    slow = bad("degraded", "partial-coverage", responding=4, monitored=7)
    return {
        "fine": Deployment(rows(changes=no_hosted)),
        "slow": Deployment(rows(changes=no_hosted | {("broadcasters", 137): slow})),
        "five": Deployment(five_problems(), LAUNCH + named),
        "gap": Deployment(
            rows(changes=no_hosted | {("indexer", 137): bad("degraded", "incomplete", position=25_799_985, missing=3)})
        ),
        "stopped": Deployment([row | seen(lately) for row in rows()], generated_at=lately),
        "dead": Deployment([row | seen(an_hour_ago) for row in rows()], generated_at=an_hour_ago),
        "dissent": Deployment(
            rows(changes=no_hosted | {("indexer", 137): {"metrics": AGREED}}),
            described={"places": places("Singapore", since)},
        ),
        "own-dissent": Deployment(
            rows(changes=no_hosted | {("indexer", 137): {"metrics": AGREED}}),
            described={"places": places("Frankfurt", since)},
        ),
        "not-everywhere": Deployment(
            rows(changes=no_hosted | {("indexer", 137): bad("unknown", "not-everywhere")}),
            described={"places": places("Singapore", since)},
        ),
        "halted": Deployment(
            rows(changes=no_hosted),
            described={
                "chains": tuple(
                    replace(chain, no_block_since=since) if chain.id == 137 else chain
                    for chain in a_description().chains
                )
            },
        ),
        "planned": Deployment(
            rows(changes=no_hosted),
            described={
                "notes": [
                    a_note("The hosted indexer moves to another machine", 26 * HOUR),
                    a_note("ننتقل إلى خادم آخر", -HOUR, (137,)),
                ]
            },
        ),
        "own": Deployment(own, OWN_SERVICES),
        "new": Deployment(rows(changes=no_hosted), is_new=True),
    }


FINE: Final = "No problem seen with sending, balances and proofs on all 4 networks"
SLOW: Final = "Sending may be slow on Polygon"
FIVE: Final = "Sending may be slow on BNB Smart Chain"
STOPPED: Final = re.compile("^No new report .*: this is the monitor, not the networks$")
OFFLINE: Final = "This device is offline: that says nothing about the networks"
ASLEEP: Final = "This page was asleep and is asking for a new report"
DEAD: Final = re.compile("^No new report since .*: this is the monitor, not the networks$")
GAP: Final = "Syncing may stop on Polygon"
OWN: Final = "Relayer: not answering"
# With marks around what is Latin, so that it does not turn the sentence around itself.
FIVE_AR: Final = re.compile("BNB Smart Chain")
ZOOMED: Final = {"viewport": {"width": 320, "height": 256}, "device_scale_factor": 4}  # 400 % of 1280 by 1024
SCENES: Final = {
    **{f"{each}": Scene(each, headline) for each, headline in (("fine", FINE), ("slow", SLOW), ("five", FIVE))},
    **{f"{each}-phone": Scene(each, text, PHONE) for each, text in (("fine", FINE), ("slow", SLOW), ("five", FIVE))},
    "stopped-phone": Scene("stopped", STOPPED, PHONE),
    "dead": Scene("dead", DEAD),
    "dead-phone": Scene("dead", DEAD, PHONE),
    "offline-phone": Scene("fine", OFFLINE, PHONE, then="offline"),
    "asleep-phone": Scene("fine", ASLEEP, PHONE, then="asleep"),
    "dissent": Scene("dissent", FINE, address="#chain=137"),
    "dissent-phone": Scene("dissent", FINE, PHONE, address="#chain=137"),
    "own-dissent-phone": Scene("own-dissent", FINE, PHONE, address="#chain=137"),
    "not-everywhere-phone": Scene(
        "not-everywhere", "Nothing is known about balances on Polygon", PHONE, address="#chain=137"
    ),
    "halted-phone": Scene("halted", FINE, PHONE, address="#chain=137"),
    "gap": Scene("gap", GAP, address="#chain=137"),
    "gap-phone": Scene("gap", GAP, PHONE),
    "planned": Scene("planned", FINE),
    "planned-phone": Scene("planned", FINE, PHONE),
    "own": Scene("own", OWN),
    "own-phone": Scene("own", OWN, PHONE),
    "new": Scene("new", FINE),
    "new-phone": Scene("new", FINE, PHONE),
    "chosen": Scene("five", FIVE, address="#chain=137"),
    "dark": Scene("five", FIVE, DESKTOP | {"color_scheme": "dark"}),
    "dark-phone": Scene("five", FIVE, PHONE | {"color_scheme": "dark"}),
    "arabic": Scene("five", FIVE_AR, DESKTOP | {"locale": "ar-EG"}),
    "arabic-phone": Scene("five", FIVE_AR, PHONE | {"locale": "ar"}),
    "german": Scene(
        "five",
        re.compile("^Senden kann länger dauern auf BNB Smart Chain$"),
        {"viewport": {"width": 640, "height": 512}, "device_scale_factor": 2, "locale": "de-AT"},  # 200 %
    ),
    "print": Scene("five", FIVE, {"viewport": {"width": 760, "height": 1075}}, media="print"),
    "zoomed": Scene("five", FIVE, ZOOMED),
    "forced-colors": Scene("five", FIVE, forced_colors=True),
    "no-scripts": Scene("five", "", DESKTOP | {"java_script_enabled": False}),
    "no-scripts-phone": Scene("five", "", PHONE | {"java_script_enabled": False}),
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
    return json.dumps(history).encode()


def a_young_history(checks: list[Json]) -> bytes:
    """Of the first minutes."""
    history = json.loads(a_history(checks, generated_at=None))
    rows = [row | {"buckets": "c"} for row in history["rows"]]
    return json.dumps(history | {"from": history["to"], "rows": rows}).encode()


def _buckets_since(instant: str) -> int:
    """With the one that fills."""
    return now_ms() // BUCKET - parse_instant(instant) // BUCKET + 1


@contextmanager
def a_site(folder: Path, name: str) -> Iterator[Site]:
    """A server with this deployment's documents."""
    deployment = deployments()[name]
    live = a_live_report(deployment.checks, generated_at=deployment.generated_at)
    history = a_past(deployment.checks, deployment.generated_at)
    if deployment.is_new:
        history = a_young_history(deployment.checks)
    about = replace(a_description(), **deployment.described).encode() if deployment.described else None
    store(folder, live, history, about)
    with a_server(folder, more=deployment.tables) as server:
        until(lambda: about in (None, server.ask("GET", PATH).body), "the description is served")
        yield Site(server, folder)


def open_scene(page: Page, base: str, scene: Scene) -> None:
    """Until it shows what the scene is about."""
    page.emulate_media(media=scene.media, forced_colors="active" if scene.forced_colors else "none")
    if scene.then:
        page.clock.install()
    page.goto(f"{base}/{scene.address}")
    page.wait_for_selector(".past-rows b, .past > p:not(:empty), tbody tr", state="attached")
    if scene.then == "offline":
        page.context.set_offline(True)
        page.clock.run_for(40 * SECOND)
    elif scene.then == "asleep":
        page.route(f"**{LIVE}", lambda _: None)  # the answer is on its way
        page.clock.fast_forward(HOUR)
