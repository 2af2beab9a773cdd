"""A real browser, and documents with whatever a test of the status page wants in them."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, Playwright, expect, sync_playwright

from lookout.base.instants import format_instant, format_second
from lookout.documents.document import Document, DocumentName, etag
from lookout.public.about import PATH
from lookout.store.sqlite import open_writer
from tests.builders import DAY, MINUTE, SECOND
from tests.integration.served import LIVE, Server
from tests.stores import once_free
from tests.wait import until

CHROMIUM: Final = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
MISSING: Final = f"{CHROMIUM} is not there (Debian: apt-get install chromium; or say where in CHROMIUM)"
HEADLESS_SHELL: Final = Path(os.environ.get("HEADLESS_SHELL", "/usr/bin/chromium-headless-shell"))
"""The same browser without its windows, which computes half as much, but keeps no page for the back button."""
BUCKET: Final = 5 * MINUTE
LAUNCH: Final = "".join(
    f'[[chains]]\nid = {chain_id}\nrpc = ["http://127.0.0.1:1"]\n' for chain_id in (1, 42161, 137, 56, 11155111)
)

BERLIN: Final = "Europe/Berlin"
GREEN: Final = '.band[data-status="current"], .networks [data-status="current"]'

expect.set_options(timeout=30_000)  # as long as a busy machine may take; a page that is right does not wait

Json = dict[str, Any]
Open = Callable[..., Page]


def now_ms() -> int:
    return round(datetime.now(UTC).timestamp() * 1000)


def a_check(status: str, service: str = "indexer", chain_id: int | None = 1, **more: object) -> Json:
    """A row of the live report, seen three seconds ago unless told otherwise."""
    seen_at = now_ms() - 3 * SECOND
    known = status in ("current", "catching-up", "degraded", "unavailable")
    return {
        "service": service,
        "chainId": chain_id,
        "status": status,
        "reason": {"current": "synced", "unmonitored": "not-configured"}.get(status, "behind"),
        "observedAt": None if status == "unmonitored" else format_instant(seen_at),
        "lastSuccessAt": format_instant(seen_at) if known else None,
        "expiresAt": format_instant(seen_at + 150 * SECOND) if known else None,
        "metrics": {"position": 100, "head": 105} if known else {},
        **more,
    }


def all_current() -> list[Json]:
    """Every check of a whole report, each current."""
    services = ("ppoi", "broadcasters", "indexer", "hosted-indexer")
    chains = (1, 56, 137, 42161, 11155111)
    return [
        a_check("current", "messaging", None, metrics={"peers": 4}, reason="responding"),
        *(a_check("current", service, chain_id) for service in services for chain_id in chains),
    ]


def of_seven_statuses() -> list[Json]:
    """A check of each."""
    old_at = now_ms() - 4 * MINUTE
    old = {"observedAt": format_instant(old_at), "expiresAt": format_instant(old_at + 150 * SECOND)}
    return [
        a_check("current", "messaging", None, metrics={"peers": 4}, reason="responding"),
        a_check("catching-up", chain_id=1),
        a_check("degraded", "broadcasters", 1, metrics={"responding": 3, "monitored": 5}, reason="partial-coverage"),
        a_check("unavailable", chain_id=56, metrics={}, reason="unreachable"),
        a_check("unknown", chain_id=137, reason="incompatible-reference"),
        a_check("unmonitored", "hosted-indexer", 11155111),
        a_check("current", "ppoi", 137) | old,
    ]


def a_live_report(checks: Iterable[object], *, generated_at: int | None = None) -> bytes:
    at = format_instant(now_ms() if generated_at is None else generated_at)
    return json.dumps({"schemaVersion": 1, "generatedAt": at, "checks": list(checks)}).encode()


def a_history(
    checks: Iterable[Json],
    changes: Mapping[int, str] | None = None,
    *,
    bucket: int = BUCKET,
    days: int = 14,
    generated_at: int | None = None,
) -> bytes:
    """A full history, all current but for these characters, counted from the end: -1 is the bucket that fills."""
    made_at = now_ms() if generated_at is None else generated_at
    buckets = ["c"] * (days * DAY // bucket + 1)
    for index, character in (changes or {}).items():
        buckets[index] = character
    to_at = made_at // bucket * bucket
    rows = [
        {
            "service": check["service"],
            "chainId": check["chainId"],
            "buckets": "".join(buckets),
            "uptime": {"24h": 0.9931, "7d": 1.0, "14d": None},
        }
        for check in checks
    ]
    report = {
        "schemaVersion": 1,
        "generatedAt": format_instant(made_at),
        "bucketSeconds": bucket // 1000,
        "retentionDays": days,
        "from": format_second(to_at - days * DAY),
        "to": format_second(to_at),
        "rows": rows,
    }
    return json.dumps(report).encode()


def store(folder: Path, live: bytes, history: bytes, about: bytes | None = None) -> None:
    """As a monitor does; without a description, as one of an older version."""
    at = now_ms()
    documents: dict[DocumentName, bytes | None] = {"live": live, "history": history, "about": about}
    written = {name: Document(body, etag(body), at) for name, body in documents.items() if body is not None}
    with closing(once_free(lambda: open_writer(folder / "lookout.db"))) as writer:
        writer.write(written, {})


class Site(NamedTuple):
    """A server, and the folder of its store."""

    server: Server
    folder: Path

    def has(self, live: bytes, history: bytes, about: bytes | None = None) -> None:
        """Store these documents, and wait until they are served."""
        store(self.folder, live, history, about)
        until(lambda: self.server.ask("GET", LIVE).body == live, "the new report is served")
        until(lambda: about in (None, self.server.ask("GET", PATH).body), "the new description is served")


@contextmanager
def a_browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launch(playwright) as started:
        yield started


@contextmanager
def launch(playwright: Playwright, *, keeps_pages: bool = False) -> Iterator[Browser]:
    """Keeping pages for the back button has to be asked for: what drives the browser turns that off otherwise."""
    program = CHROMIUM if keeps_pages or not HEADLESS_SHELL.exists() else HEADLESS_SHELL
    left_out = ["--disable-back-forward-cache"] if keeps_pages else None
    started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"], ignore_default_args=left_out)
    yield started
    started.close()


def line(page: Page, chain_id: int | None) -> Locator:
    """The line of a network, or of what is of none."""
    return page.locator(f'.networks > li[data-chain="{"null" if chain_id is None else chain_id}"]')


def answer(page: Page, chain_id: int, label: str) -> Locator:
    return line(page, chain_id).locator(".answer", has_text=label)


def row(page: Page, service: str, chain_id: int | None, network: int = 1) -> Locator:
    """What a network's line opens to; messaging is in every network's."""
    of = line(page, chain_id or network)
    if of.locator("details").get_attribute("open") is None:
        of.locator("summary").click()
    return of.locator(f""".rows > li[data-check='["{service}",{"null" if chain_id is None else chain_id}]']""")


def find_violations(page: Page) -> list[Any]:
    """What axe complains of."""
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("async () => (await axe.run()).violations")
    return [(v["id"], [(n["html"][:160], n["failureSummary"][:300]) for n in v["nodes"]]) for v in found]


class Watched:
    """A page together with all that it asked for and complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.origins: set[str] = set()
        self.complaints: list[str] = []
        page.on("request", lambda request: self.origins.add("{0.scheme}://{0.netloc}".format(urlsplit(request.url))))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self._heard(message.text))

    def _heard(self, text: str) -> None:
        if "Failed to load resource" not in text:  # a server that is dead is what some tests are about
            self.complaints.append(text)
