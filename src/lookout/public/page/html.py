"""The page as it is sent: a frame, and in it the rows of one live report, ready-made.

A script takes the rows' place and keeps them up to date. Where none runs, they state their instant and the page reloads
itself (if scripts run but page.js has failed, reload.js does that), and none is shown as plainly healthy: nobody knows
how long ago the page was loaded.
"""

from collections.abc import Iterable
from functools import cache, lru_cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

import msgspec
from msgspec import UNSET

from lookout.core.model import Metrics
from lookout.documents.reports import SCHEMA_VERSION, LiveReport, LiveRow
from lookout.public.about import Description
from lookout.public.page.style import status_rules
from lookout_reader.about import About
from lookout_reader.statuses import STATUSES, StatusEntry
from lookout_reader.words import NOTES, OTHERS, Note

# By the contract's words; a word that is not here is read as unknown, as every reader does (C1).
_STATUSES: Final = {status.word: status.past_sentence for status in STATUSES if status.past_sentence is not None}
_SCRIPTS: Final = (
    "page.js",
    "reload.js",
    "now.js",
    "past.js",
    "strips.js",
    "words.js",
    "dom.js",
    "lookout-reader.js",
)
_TYPES: Final = {
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    **dict.fromkeys(_SCRIPTS, "text/javascript; charset=utf-8"),
}


def assets() -> dict[str, tuple[str, bytes]]:
    """What the page loads, by path: media type and content."""
    bodies = {name: files(__package__).joinpath(name).read_bytes() for name in _TYPES}
    bodies["page.css"] += status_rules().encode()
    return {f"/assets/{name}": (media_type, bodies[name]) for name, media_type in _TYPES.items()}


def render(live: bytes | None, live_path: str, history_path: str, description: Description) -> bytes:
    """The page with this live report in it, or without one."""
    text = _frame().substitute(
        live_path=escape(live_path),
        history_path=escape(history_path),
        shapes="\n".join(map(_symbol, STATUSES)),
        about=escape(description.encode().decode()),
        ready_made=_ready_made(live, description),
    )
    return text.encode()


@cache
def _frame() -> Template:
    return Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


def _symbol(status: StatusEntry) -> str:
    return f'<symbol id="shape-{status.word}" viewBox="0 0 16 16">{status.look.svg}</symbol>'


def _ready_made(live: bytes | None, description: Description) -> str:
    try:
        report = None if live is None else msgspec.json.decode(live, type=LiveReport)
    except (ValueError, RecursionError):  # of a newer monitor, perhaps: the script may still be able to read it
        report = None
    if report is not None and report.schema_version != SCHEMA_VERSION:  # C6
        report = None
    rows = _no_report() if report is None else _table(report, description)
    others = [each.name for each in description.services if each.run_by_others]
    notes = "\n".join(_note(note, others) for note in NOTES if others or note.id != OTHERS)
    title = "the wallet" if description.title == description.protocol else escape(description.title)
    return f"""<div class="ready-made">
<h1>Status of what {title} depends on</h1>
{rows}
<h2>What this does not say</h2>
<ul class="notes">
{notes}
</ul>
{_operator(description)}</div>"""


def _operator(description: Description) -> str:
    texts = (("Run by", description.operator), ("Contact:", description.contact))
    given = [f"{before} {escape(text)}" for before, text in texts if text]
    return f"<p>{'. '.join(given)}.</p>\n" if given else ""


def _note(note: Note, others: Iterable[str]) -> str:
    services = others if note.id == OTHERS else note.services or ()
    of = "" if note.services is None else f"<b>{escape(', '.join(services))}</b>: "
    return f"<li>{of}{escape(note.text, quote=False)}</li>"


def _no_report() -> str:
    return "<p>There is no report that this page can read: none is stored yet, or it is of another version.</p>"


def _table(report: LiveReport, description: Description) -> str:
    about = description.read()
    rows = (row for row in report.checks if description.show_unmonitored or row.status != "unmonitored")
    return f"""<p>As it was at <time datetime="{report.generated_at}">{_words(report.generated_at)} UTC</time>. Without
its script this page cannot tell how old that is. Past its time in the last column a row's status is not known. The page
asks for a newer report every 30 seconds where it can: if the time above stays the same, reload it.</p>
<table>
<thead><tr><th scope="col">service</th><th scope="col">chain</th><th scope="col">status then</th>
<th scope="col">in numbers</th><th scope="col">seen (UTC)</th><th scope="col">holds until (UTC)</th></tr></thead>
<tbody>
{_rows(rows, about)}
</tbody>
</table>"""


def _rows(rows: Iterable[LiveRow], about: About) -> str:
    return "\n".join(_row(row, _chain(row.chain_id, about)) for row in rows)


@lru_cache(4096)  # from one report to the next few rows change
def _row(row: LiveRow, chain: str) -> str:
    status = row.status if row.status in _STATUSES else "unknown"
    return (
        f'<tr><th scope="row">{escape(row.service)}</th><td>{escape(chain)}</td>'
        f'<td><svg class="shape" aria-hidden="true"><use href="#shape-{status}"/></svg> '
        f"<b>{status}</b>: {_STATUSES[status]}</td><td>{_numbers(row.metrics)}</td>"
        f"<td>{_words(row.observed_at)}</td><td>{_words(row.expires_at)}</td></tr>"
    )


def _chain(chain_id: int | None, about: About) -> str:
    if chain_id is None:
        return "shared"
    name = about.chain_name(chain_id)
    return f"{name} (test network)" if chain_id in about.test_networks else name


def _numbers(metrics: Metrics) -> str:
    return ", ".join(
        f"{name} {number:,}" for name, number in msgspec.structs.asdict(metrics).items() if number is not UNSET
    )


def _words(instant: str | None) -> str:
    """To the second, for people."""
    return "—" if instant is None else f"{instant[:10]} {instant[11:19]}"
