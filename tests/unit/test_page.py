"""The page as it is sent, before any script has run."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

import msgspec
import pytest
from msgspec.structs import replace

from lookout.core.model import Check, Metrics, Report, Row, Status
from lookout.documents.reports import live_document
from lookout.public.about import Description, NoteDescription, ServiceDescription
from lookout.public.feeds.files import FEED
from lookout.public.page import html
from lookout.public.page.sources import drop_unused, join_modules, squeeze_script, strip_source
from lookout.public.page.texts import LANGUAGES, read_catalogue
from lookout.server.poller import Poller
from lookout.server.site import build_site
from lookout_reader.words import NOTES
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, MINUTE, NOON, SECOND
from tests.descriptions import LAUNCH, a_description
from tests.unit.server.fakes import FakeReader, SetClock

LIVE, HISTORY = "/api/v1/protocol/liveness", "/api/v1/protocol/liveness/history"
PAGE = Path(html.__file__).parent
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


def test_a_row_states_its_status_its_numbers_and_its_instants() -> None:
    text = rendered(a_row("catching-up"), a_row("current", MESSAGING))
    assert "2026-11-05 12:00:00 UTC" in text
    assert "<b>behind</b>: answered, but was behind" in text
    assert "position 7,000, head 7,005" in text
    assert "<td>Ethereum</td>" in text
    assert "<b>no problem seen</b>: answered, and what was checked was as it should be" in text
    assert "<td>shared by the chains</td>" in text
    assert ">2026-11-05 11:59:59</td>" in text
    assert ">2026-11-05 12:02:29</td>" in text


@pytest.mark.clause("C3", "C4", "C11", "C12")
@pytest.mark.parametrize(
    ("rows", "summary"),
    [
        pytest.param(
            all_current(a_row("unavailable", Check("indexer", 11155111)), a_row("unmonitored", MESSAGING)),
            "no problem seen in 20 checks (those not watched and test networks are not counted)",
            id="only what counts and is watched is counted",
        ),
        pytest.param(
            all_current(a_row("unavailable", Check("indexer", 137)), a_row("catching-up", MESSAGING)),
            "Indexer on Polygon: no usable answer; Messaging: behind",
            id="what was not well is named, the worst first",
        ),
        pytest.param(
            all_current(*(a_row("unavailable", Check("indexer", chain_id)) for chain_id in (*LAUNCH, 8453, 5, 6))),
            "; ".join(
                f"Indexer on {name}: no usable answer" for name in (*list(LAUNCH.values())[:4], "Base", "chain 5")
            )
            + "; 7 more",
            id="as far as it is not too much",
        ),
        pytest.param(
            all_current(replace(a_row("current"), expires_at=NOON)),
            "Indexer on Ethereum: too old to say",
            id="what has expired is not known to be well",
        ),
        pytest.param(
            [row for row in all_current() if row.check != INDEXER],
            "Indexer on Ethereum: not known",
            id="what the report lacks is not known",
        ),
        pytest.param(
            [
                a_row("unavailable" if row.check.chain_id == 11155111 else "unmonitored", row.check)
                for row in all_current()
            ],
            "no mainnet is watched",
            id="a test network that is watched is not nothing",
        ),
        pytest.param(
            [a_row("unmonitored", row.check) for row in all_current()], "nothing is watched", id="nothing is watched"
        ),
    ],
)
def test_a_summary_and_the_warning_stand_before_the_table(rows: list[Row], summary: str) -> None:
    text = rendered(*rows)
    assert f"<b>{summary}</b>" in text
    assert text.index(summary) < text.index("It is not a signal that it is safe to transact.") < text.index("<table>")


@pytest.mark.clause("C5", "C12")
def test_what_it_means_and_what_to_do_stand_between_the_summary_and_the_table() -> None:
    down = [replace(a_row("unavailable", Check("indexer", each)), reason="unreachable") for each in (1, 137, 11155111)]
    partial = replace(a_row("degraded", Check("broadcasters", 137)), reason="partial-coverage")
    unheard_of = replace(a_row("unavailable", Check("ppoi", 137)), reason="maintenance")
    text = rendered(*all_current(*down, partial, unheard_of))
    meanings = re.findall(r"<li><b>([^<]*)</b>: ([^<]*)</li>", text[: text.index("<table>")])
    assert meanings == [
        ("Ethereum, Polygon", "new transactions may show up late: the indexer gives no usable answer"),
        ("Polygon", "sending may take longer: some broadcasters are not heard, others may work"),
    ]
    advice = text.index("do not send it again at once")
    assert text.index('class="summary"') < advice < text.index("<table>")
    assert text.count("do not send it again at once") == 1
    assert "do not send" not in rendered(*all_current())


def test_rows_with_problems_come_first_the_worst_of_them_at_the_top() -> None:
    behind, down = Check("broadcasters", 137), Check("hosted-indexer", 8453)
    unwatched = Check("ppoi", 1)
    rows = all_current(a_row("catching-up", behind), a_row("unavailable", down), a_row("unmonitored", unwatched))
    found = re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td>', rendered(*rows))
    assert found[:4] == [
        ("Hosted indexer", "Base"),
        ("Broadcasters", "Polygon"),
        ("Messaging", "shared by the chains"),
        ("Private proof of innocence", "Ethereum"),
    ]


def test_chains_stand_in_the_order_of_the_configuration_and_others_after_them_by_number() -> None:
    text = rendered(*(a_row("current", Check("indexer", chain_id)) for chain_id in (1, 10, 5, 137, 8453, 42161)))
    order = re.findall(r"</th><td>([^<]*)</td>", text)
    assert order == ["Ethereum", "Arbitrum One", "Polygon", "Base", "chain 5", "chain 10"]


@pytest.mark.clause("M10")
@pytest.mark.parametrize(
    ("chain_id", "name"),
    [
        pytest.param(8453, "Base", id="a chain has the name that the configuration gives it"),
        pytest.param(137, "Polygon", id="a chain of the launch that the configuration leaves out has its own"),
        pytest.param(10, "chain 10", id="any other is a number"),
        pytest.param(11155111, "Sepolia (test network)", id="a test network is said to be one"),
    ],
)
def test_a_chain_is_called(chain_id: int, name: str) -> None:
    assert f"<td>{name}</td>" in rendered(a_row("current", Check("indexer", chain_id)))


def test_the_protocol_of_the_monitors_file_is_nobodys_title() -> None:
    ours = replace(DESCRIPTION, protocol="ours", title="ours")
    text = html.render(None, LIVE, HISTORY, ours.follow_monitor(a_description()), NOON).decode()
    assert "Status of what the wallet depends on" in text
    assert '"title":"ours"' in unescape(text)


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
    other = re.findall(r"<tr><th scope=\"row\">.*?</tr>", rendered(a_row("degraded")), re.DOTALL)[0]
    elements = Elements(row)
    assert elements.names() == Elements(other).names()
    assert {attributes.get("class") for _, attributes in elements.found} == {None, "shape"}
    assert "data-status" not in row


def test_what_the_operator_notes_stands_before_the_rows_with_what_it_is_about() -> None:
    hour = {"from_": "2026-11-05T11:00:00Z", "added_at": "2026-11-05T11:00:00Z"}
    notes = [
        NoteDescription(id="2", text="<b>Moving</b>", services=(), chains=(), until=None, **hour),
        NoteDescription(
            id="1", text="Rebuilt", services=("ppoi",), chains=(8453,), until="2026-11-05T13:00:00Z", **hour
        ),
    ]
    report = live_document(Report(NOON, (a_row("current"),))).body
    text = html.render(report, LIVE, HISTORY, replace(DESCRIPTION, notes=notes), NOON).decode()
    moving = "about everything, from 2026-11-05 11:00 UTC on"
    assert f"<li><b>From the operator, {moving}</b>: &lt;b&gt;Moving&lt;/b&gt;</li>" in text
    about = "about Private proof of innocence on Base, from 2026-11-05 11:00 to 13:00 UTC"
    assert f"<li><b>From the operator, {about}</b>: Rebuilt</li>" in text
    assert text.index("Rebuilt") < text.index("<table>")
    assert "no problem seen" in text


@pytest.mark.clause("C12")
def test_broadcasters_of_which_some_answered_are_said_to_be_that_and_no_worse() -> None:
    text = rendered(replace(a_row("degraded", BROADCASTERS), reason="partial-coverage"))
    assert "<b>limited</b>: some were heard, others were not" in text
    assert "serious" not in text


@pytest.mark.clause("C1")
def test_a_status_that_nobody_knows_is_unknown() -> None:
    assert "<b>not known</b>" in rendered(replace(a_row("current"), status="splendid"))


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
        b"",
        b"<html>",
        b"{}",
        b'{"schemaVersion":1}',
        b"[1]",
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
def test_every_warning_of_the_contract_is_on_the_page_beside_the_services_it_is_about() -> None:
    text = rendered(a_row("degraded", BROADCASTERS))
    titles = {service.name: service.title for service in DESCRIPTION.services}
    for note in NOTES:
        words = read_catalogue("en").texts[f"warning.{note.id}"]
        if note.services is None:
            assert text.count(str(words)) == 1
        else:
            about = ", ".join(titles[each] for each in note.services)
            assert f"<li><b>{about}</b>: {words}</li>" in text


def test_nothing_in_the_page_needs_an_exception_from_its_policy() -> None:
    for name, attributes in Elements(rendered(a_row("current"))).found:
        assert not [attribute for attribute in attributes if attribute.startswith("on") or attribute == "style"]
        assert name != "style"
        for link in ("src", "href"):
            assert (attributes.get(link) or "/").startswith(("/", "#")), "all of it is the server's own"


def test_every_file_that_is_loaded_is_an_asset() -> None:
    assets = html.assets()
    for name, attributes in Elements(rendered()).found:
        if attributes.get("rel") == "alternate":
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
        assert f"/assets/{version}/texts-{code}.js" in html.assets(), "the page's own"
        assert f"/assets/texts-{code}.js" in html.assets(), "that of another site's badge"


@pytest.mark.parametrize(
    ("source", "left"),
    [
        pytest.param("/** What\n * it is. */\nlet a = 1;\n", "let a = 1;\n", id="a comment of several lines"),
        pytest.param("  // why\n  f(x); // and why\n", "f(x); // and why\n", id="one of its own line, and no other"),
        pytest.param('a("//x");\nb(/\\/*x/);\n\nc();\n', 'a("//x");\nb(/\\/*x/);\nc();\n', id="nothing in strings"),
    ],
)
def test_what_a_browser_does_not_need_is_not_sent(source: str, left: str) -> None:
    assert strip_source(source) == left


SCRIPTS = {
    "spaces and line ends between statements": ("const a = 1;\nconst b = [ a, 2 ];", "const a=1;const b=[a,2];"),
    "words stay apart": ("return typeof x in y;\nasync function f() {}", "return typeof x in y;async function f(){}"),
    "a word at a line's end does as well": ("const\n  a = 1;", "const\na=1;"),
    "a block's end keeps its line end": ("if (a) {\n  b();\n}\nc();", "if(a){b();}\nc();"),
    "what follows a block in its line needs none": ("if (a) {} else {}", "if(a){}else{}"),
    "texts stay as they are": ('f("a  // \\" b", `c  ${d}  /* e */`);', 'f("a  // \\" b",`c  ${d}  /* e */`);'),
    "so does a text in a text": ("f(`a  ${g({ b }, `c  d`)}  e`) + h;", "f(`a  ${g({ b }, `c  d`)}  e`)+h;"),
    "a dollar sign in a text begins no slot": ("f(`a  $ ${b}  c`, `d  $`);", "f(`a  $ ${b}  c`,`d  $`);"),
    "patterns stay as they are": (r"x = /^ [ \/\]\"] + $/g.test(y);", r"x=/^ [ \/\]\"] + $/g.test(y);"),
    "a division is none": ("const s = (a) / b + c[0] / d;", "const s=(a)/ b+c[0]/ d;"),
    "signs stay apart": ("a = b + +c - -d + e++ + f;", "a=b+ +c- -d+e++ +f;"),
    "comments go": ("/* @__PURE__ */ f(1); // why\ng(); /* and\nhow */", "f(1);g();"),
}


@pytest.mark.parametrize(("code", "squeezed"), SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_is_squeezed(code: str, squeezed: str) -> None:
    assert squeeze_script(code) == squeezed


@pytest.mark.parametrize(
    "code", ["f('a  b');", "f(`${g({ a: { b } })}`);"], ids=["single quotes", "braces in braces in a slot"]
)
def test_a_script_with_texts_that_are_not_understood_is_not_squeezed(code: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        squeeze_script(code)


MODULES = {
    "start": 'import { list } from "./words.js";\nimport { CODE, PLACE } from "./apart.js";\nlist(CODE, PLACE);\n',
    "words": '// Why.\nimport { PLACE } from "./apart.js";\nexport function list() {}\nconst at = PLACE;\n',
    "twin": 'import { list } from "./words.js";\nconst at = list();\n',
}


def test_modules_become_one_each_after_those_that_it_needs() -> None:
    joined = join_modules(MODULES.__getitem__, "start", apart="apart")
    assert joined == (
        'import { CODE, PLACE } from "./apart.js";\nfunction list() {}\nconst at = PLACE;\n\nlist(CODE, PLACE);'
    )


def test_modules_that_declare_the_same_name_do_not_become_one() -> None:
    with pytest.raises(ValueError, match="declared in more than one module: at"):
        join_modules(MODULES.__getitem__, "twin", apart="apart")


@pytest.mark.parametrize(
    ("code", "left"),
    [
        pytest.param("function a() {\n  b();\n}\nfunction b() {}\na();\n", None, id="what is needed is kept"),
        pytest.param("const c = [\n  1,\n];\nstart();\n", "start();\n", id="what nothing needs is not"),
        pytest.param("const a = () => b;\nconst b = () => a;\ngo();\n", "go();\n", id="nor what needs only itself"),
        pytest.param("const { a } = f();\nx = 1;\n", None, id="what may have an effect is kept"),
    ],
)
def test_what_nothing_needs_is_not_sent(code: str, left: str | None) -> None:
    assert drop_unused(code) == (code if left is None else left)


def test_no_script_has_a_text_of_several_lines_which_would_lose_its_indentation() -> None:
    for path in PAGE.glob("*.js"):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert all(line.count("`") % 2 == 0 for line in code.splitlines()), path


@pytest.mark.clause("E1", "C3", "C4")
def test_after_the_monitor_died_no_row_is_well_though_the_store_stays_as_it_is() -> None:
    store, clock = FakeReader(), SetClock()
    poller = Poller(store, clock, 300_000, build_site("protocol", DESCRIPTION, {}))

    def ask_after(passed_ms: int) -> str:
        clock.elapsed += passed_ms
        clock.wall += passed_ms
        poller.poll()
        poller.check_time()
        return poller.resources["/"].plain.found.body.decode()

    assert "There is no report" in ask_after(0)
    store.put("live", live_document(Report(NOON, tuple(all_current()))).body)
    assert "<b>no problem seen in 21 checks" in ask_after(SECOND)
    made = poller.resources["/"]
    ask_after(SECOND)
    assert poller.resources["/"] is made  # once, and not for each request or look
    text = ask_after(8 * MINUTE)
    assert "no problem seen" not in text
    assert "Messaging: too old to say; " in text
    assert text.count("<b>too old to say</b>: what was seen was too old to tell") == len(all_current())
