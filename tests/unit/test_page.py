"""The page as it is sent, before any script has run."""

import re
from html.parser import HTMLParser
from pathlib import PurePosixPath

import msgspec
import pytest
from msgspec.structs import replace

from lookout.base.instants import format_second
from lookout.base.setting_types import PAPERS
from lookout.core.model import Check, Metrics, Report, Row, Status
from lookout.documents.reports import live_document
from lookout.public.about import Description, NoteDescription, PlaceDescription, ServiceDescription
from lookout.public.feeds import FEED
from lookout.public.page import html
from lookout.public.page.assets import LANGUAGES, load_assets
from lookout.server.poller import Poller
from lookout.server.site import build_site
from lookout_reader.words import NOTES
from tests.builders import BROADCASTERS, HOUR, INDEXER, MESSAGING, MINUTE, NOON, SECOND
from tests.descriptions import LAUNCH, a_description
from tests.unit.server.fakes import FakeReader, SetClock

LIVE, HISTORY = "/api/v1/protocol/liveness", "/api/v1/protocol/liveness/history"
ABOUT_META = "lookout-about"
OWN_SCRIPTS = 3
DESCRIPTION = a_description(LAUNCH | {8453: "Base"})


def all_current(*changed: Row) -> list[Row]:
    """A row for every check that is expected, current but for these."""
    by_chain = ("ppoi", "broadcasters", "indexer", "hosted-indexer")
    checks = [MESSAGING, *(Check(service, chain_id) for service in by_chain for chain_id in (*LAUNCH, 8453))]
    rows = {check: a_row("current", check) for check in checks} | {row.check: row for row in changed}
    return list(rows.values())


def rendered(*rows: Row, now: int = NOON) -> str:
    return html.render(live_document(Report(NOON, rows)).body, LIVE, HISTORY, DESCRIPTION, now).decode()


def a_row(status: Status, check: Check = INDEXER) -> Row:
    metrics = Metrics(position=7_000, head=7_005)
    return Row(check, status, "synced", NOON - SECOND, NOON - SECOND, NOON + 149 * SECOND, metrics)


class Elements(HTMLParser):
    """What a page consists of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def names(self) -> list[str]:
        return [name for name, _ in self.found]


def test_a_row_states_its_status_its_reason_and_its_instants() -> None:
    text = rendered(replace(a_row("catching-up"), reason="behind"), a_row("current", MESSAGING))
    assert "<time>2026-11-05 12:00:00</time> UTC" in text
    instants = "<td>2026-11-05 11:59:59</td><td>2026-11-05 12:02:29</td>"
    behind = "<td>Ethereum</td><td>behind</td><td>It is behind where it should be.</td>"
    assert f'<tr><th scope="row">Indexer</th>{behind}{instants}</tr>' in text
    current = "<td>all</td><td>no problem seen</td><td>It is up to date.</td>"
    assert f'<tr><th scope="row">Messaging</th>{current}{instants}</tr>' in text
    assert text.index("It is not a signal that it is safe to transact.") < text.index("<table>")


def test_a_page_has_its_operators_picture_and_colour_and_what_other_sites_show_of_it() -> None:
    own = replace(DESCRIPTION, title="Acorn <3", logo="/assets/logo.svg", accent="#0b7a5e")
    found = Elements(html.render(None, LIVE, HISTORY, own, NOON).decode()).found
    assert ("img", {"src": "/assets/logo.svg", "alt": ""}) in found
    assert ("meta", {"name": "theme-color", "content": "#0b7a5e"}) in found
    shown = {attributes["property"]: attributes["content"] for _, attributes in found if "property" in attributes}
    assert (
        shown.pop("og:description")
        == "What one monitor sees of the services that Acorn <3 depends on. No official status."
    )
    assert shown == {"og:type": "website", "og:title": "Status · Acorn <3"}
    assert "img" not in Elements(rendered()).names()


@pytest.mark.clause("C12")
def test_without_scripts_too_the_operator_and_the_notes_that_are_not_over_are_there() -> None:
    notes = [
        NoteDescription(text, text, ("indexer",), (137,), format_second(NOON - HOUR), until, format_second(NOON))
        for text, until in (("<b>now</b>", None), ("past", format_second(NOON)))
    ]
    text = html.render(None, LIVE, HISTORY, replace(DESCRIPTION, notes=notes, operator="Acorn & Co"), NOON).decode()
    head = "From the operator, about indexer on Polygon, from 2026-11-05 11:00 UTC on:"
    assert f"<ul><li>{head} <b>&lt;b&gt;now&lt;/b&gt;</b></li></ul>" in text
    assert "This monitor is run by Acorn &amp; Co." in text


def test_with_witnesses_the_page_speaks_of_as_many_places() -> None:
    places = tuple(PlaceDescription(name=name, differs=()) for name in ("Frankfurt", "Singapore", "Lima"))
    text = html.render(None, LIVE, HISTORY, replace(DESCRIPTION, places=places), NOON).decode()
    assert "This is what one monitor sees from 3 places." in text


@pytest.mark.parametrize("paper", PAPERS)
def test_the_papers_that_an_accent_is_compared_with_are_those_of_the_page(paper: str) -> None:
    _, style = load_assets()["/assets/page.css"]
    assert f"--paper: {paper}".encode() in style


@pytest.mark.clause("C3", "C4")
def test_a_row_that_has_expired_is_too_old_to_say_and_gives_no_reason() -> None:
    text = rendered(a_row("current"), now=NOON + 149 * SECOND)
    assert "<td>too old to say</td><td></td>" in text
    assert "no problem seen" not in text


@pytest.mark.clause("M10")
@pytest.mark.parametrize(
    ("chain_id", "name"),
    [
        pytest.param(8453, "Base", id="a chain has the name that the configuration gives it"),
        pytest.param(10, "chain 10", id="any other is a number"),
        pytest.param(11155111, "Sepolia (test network)", id="a test network is said to be one"),
    ],
)
def test_a_chain_is_called(chain_id: int, name: str) -> None:
    assert f"<td>{name}</td>" in rendered(a_row("current", Check("indexer", chain_id)))


def test_the_scripts_have_the_description_whatever_is_in_it() -> None:
    description = a_description({1: "Mainnet", 5: "\"><script>alert('&amp;')</script>"}, title="<b>")
    report = live_document(Report(NOON, (a_row("current", Check("indexer", 5)),))).body
    text = html.render(report, LIVE, HISTORY, description, NOON).decode()
    (found,) = (attributes["content"] for _, attributes in Elements(text).found if attributes.get("name") == ABOUT_META)
    assert found is not None
    assert msgspec.json.decode(found, type=Description) == description
    assert Elements(text).names().count("script") == OWN_SCRIPTS, "the page's own"


def test_whoever_reads_feeds_finds_the_servers() -> None:
    feeds = [attributes for _, attributes in Elements(rendered()).found if attributes.get("rel") == "alternate"]
    assert [(feed["href"], feed["type"]) for feed in feeds] == [(FEED, "application/atom+xml")]


@pytest.mark.clause("C4")
@pytest.mark.parametrize("status", ["current", "catching-up", "degraded", "unavailable", "unknown", "unmonitored"])
def test_no_row_is_told_apart_by_colour_least_of_all_a_current_one(status: Status) -> None:
    (row,) = re.findall(r"<tr><th scope=\"row\">.*?</tr>", rendered(a_row(status)), re.DOTALL)
    assert {(name, *attributes) for name, attributes in Elements(row).found} == {("tr",), ("th", "scope"), ("td",)}


def test_hostile_names_stay_text() -> None:
    row = replace(
        a_row("current"),
        check=Check("<script>alert(1)</script>", 1),
        status='"><img src=x onerror=alert(1)>',
    )
    text = rendered(row)
    assert Elements(text).names().count("script") == OWN_SCRIPTS, "the page's own"
    assert "img" not in Elements(text).names()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    services = (ServiceDescription("<script>", "a service", run_by_others=True),)
    noted = html.render(None, LIVE, HISTORY, replace(DESCRIPTION, services=services), NOON).decode()
    assert Elements(noted).names().count("script") == OWN_SCRIPTS
    paths = html.render(None, '/api/v1/"><script>/liveness', HISTORY, DESCRIPTION, NOON).decode()
    assert Elements(paths).names().count("script") == OWN_SCRIPTS


@pytest.mark.clause("C6")
@pytest.mark.parametrize(
    "live",
    [
        None,
        b"<html>",
        b'{"schemaVersion":1,"generatedAt":"\xff"}',
        b'{"new":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        live_document(Report(NOON, (a_row("current"),))).body.replace(b'"schemaVersion":1', b'"schemaVersion":2'),
    ],
)
def test_without_a_report_that_it_can_read_the_page_says_so(live: bytes | None) -> None:
    text = html.render(live, LIVE, HISTORY, DESCRIPTION, NOON).decode()
    assert "There is no report that this page can read" in text
    assert "<table>" not in text
    assert f'<meta name="lookout-live" content="{LIVE}">' in text


@pytest.mark.clause("C12")
def test_every_warning_of_the_contract_is_on_the_page_once() -> None:
    text = rendered(a_row("degraded", BROADCASTERS))
    for note in NOTES:
        assert text.lower().count(note.text.lower()) == 1
    assert "Private proof of innocence, Hosted indexer: run by other people" in text


def test_nothing_in_the_page_needs_an_exception_from_its_policy() -> None:
    for name, attributes in Elements(rendered(a_row("current"))).found:
        assert not [attribute for attribute in attributes if attribute.startswith("on") or attribute == "style"]
        assert name != "style"
        for link in ("src", "href"):
            assert (attributes.get(link) or "/").startswith(("/", "#")), "all of it is the server's own"


def test_every_file_that_is_loaded_is_an_asset() -> None:
    assets = load_assets()
    for name, attributes in Elements(rendered()).found:
        if name == "a" or attributes.get("rel") == "alternate":
            continue  # for whoever follows it
        path = attributes.get("src") or attributes.get("href") or ""
        assert path in assets or path.startswith("#") or path == "", name
    for path, (_, body) in assets.items():
        for imported in re.findall(r'from "\./([^"]+)"', body.decode()):
            assert str(PurePosixPath(path).with_name(imported)) in assets, path


def test_what_the_page_loads_has_its_version_in_its_path() -> None:
    loaded = re.findall(r'(?:src|href)="/assets/([^"]*)"', rendered())
    (version,) = {name.split("/")[0] for name in loaded if name != "reload.js"}
    assert sorted(loaded) == sorted(
        [*(f"{version}/{name}" for name in ("icon.svg", "page.css", "language.js", "page.js")), "reload.js"]
    ), "reload.js has to come when nothing else does"
    for code in LANGUAGES:
        assert f"/assets/{version}/texts-{code}.js" in load_assets(), "the page's own"
        assert f"/assets/texts-{code}.js" in load_assets(), "that of another site's badge"


@pytest.mark.clause("E1", "C3", "C4")
def test_after_the_monitor_died_no_row_is_well_though_the_store_stays_as_it_is() -> None:
    store, clock = FakeReader(), SetClock()
    site = build_site("protocol", DESCRIPTION, {})
    poller = Poller(store, clock, 300_000, site, lambda _: site)

    def ask_after(passed_ms: int) -> str:
        clock.elapsed += passed_ms
        clock.wall += passed_ms
        poller.poll()
        poller.check_time()
        return poller.resources["/"].plain.found.body.decode()

    assert "There is no report" in ask_after(0)
    store.put("live", live_document(Report(NOON, tuple(all_current()))).body)
    assert ask_after(SECOND).count("<td>no problem seen</td>") == len(all_current())
    made = poller.resources["/"]
    ask_after(SECOND)
    assert poller.resources["/"] is made  # once, and not for each request or look
    text = ask_after(8 * MINUTE)
    assert "no problem seen" not in text
    assert text.count("<td>too old to say</td>") == len(all_current())
