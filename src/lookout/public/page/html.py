"""The page as it is sent: a frame, and in it the rows of one live report as a plain table.

A script takes the table's place and keeps it up to date. Where no script runs, the server's clock judges the rows, and
the page reloads itself (if scripts run but page.js has failed, reload.js does that). No row is shown as plainly
healthy: the page may have been loaded long ago.
"""

import json
from collections.abc import Iterator
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from lookout.base.instants import format_second
from lookout.public.about import Description, scope_text, time_text
from lookout.public.page.assets import LANGUAGES, read_catalogue, versioned_folder
from lookout.public.picture import read_report
from lookout_reader.clocks import Clocks
from lookout_reader.headline import headline_of
from lookout_reader.overview import overview_of
from lookout_reader.report import LiveReport, Row
from lookout_reader.status import effective_status
from lookout_reader.statuses import STATUSES
from lookout_reader.words import NOTES, OTHERS, REASON_TEXTS, notes_for

FIRST_NOTES: Final = ("one-view", "not-a-signal")


def render(
    live: bytes | None, live_path: str, history_path: str, description: Description, now: int, received_ago_ms: int = 0
) -> bytes:
    """The page with this live report in it, judged at ``now`` and so long after it arrived, or without one."""
    report = None if live is None else read_report(live)
    title = "the wallet" if description.title == description.protocol else escape(description.title)
    general = notes_for("", run_by_others=False, places=len(description.read().places))
    text = _frame().substitute(
        live_path=escape(live_path),
        history_path=escape(history_path),
        assets=versioned_folder(),
        shapes=_shapes(),
        about=escape(description.encode().decode()),
        languages=_languages(),
        title=title,
        name="Lookout" if description.title == description.protocol else title,
        accent=f'<meta name="theme-color" content="{description.accent}">\n' if description.accent else "",
        logo=f'<header class="brand"><img src="{description.logo}" alt=""></header>\n' if description.logo else "",
        first=" ".join(escape(note.text) for note in general if note.id in FIRST_NOTES),
        notes=_notes(description, now),
        limits=" ".join(_limits(description)),
        operator=_operator(description),
        report=(
            _report(report, description, now, received_ago_ms)
            if isinstance(report, LiveReport)
            else "<p>There is no report that this page can read: none is stored yet, or it is of another version.</p>"
        ),
    )
    return text.encode()


@cache
def _frame() -> Template:
    return Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


@cache
def _languages() -> str:
    return escape(json.dumps({code: read_catalogue(code).language for code in LANGUAGES}))


@cache
def _shapes() -> str:
    return "\n".join(
        f'<symbol id="shape-{status.word}" data-character="{status.look.shape}" viewBox="0 0 16 16">'
        f"{status.look.svg}</symbol>"
        for status in STATUSES
    )


def _text(key: str) -> str:
    return escape(str(read_catalogue(LANGUAGES[0]).texts[key]), quote=False)


def _limits(description: Description) -> Iterator[str]:
    """What the rows do not say (C12), but for what stands before them."""
    others = [escape(service.title) for service in description.services if service.run_by_others]
    for note in NOTES:
        if note.id == OTHERS and others:
            yield f"{', '.join(others)}: {note.text[0].lower()}{escape(note.text[1:])}"
        elif note.id not in (*FIRST_NOTES, OTHERS):
            yield _text(f"warning.{note.id}")


def _notes(description: Description, now: int) -> str:
    """The operator's current and future notes."""
    about = description.read()
    lines = []
    for note in about.notes_at(now):
        scope = scope_text(note.services, [*map(about.chain_name, note.chains)])
        head = f"From the operator, about {scope}, {time_text(note.from_at, note.until_at)}:"
        lines.append(f"<li>{escape(head)} <b>{escape(note.text)}</b></li>")
    return f"<ul>{''.join(lines)}</ul>" if lines else ""


def _operator(description: Description) -> str:
    by = f"This monitor is run by {description.operator}." if description.operator else ""
    contact = f"Contact: {description.contact}" if description.contact else ""
    return escape(f"{by} {contact}".strip())


def _report(report: LiveReport, description: Description, now: int, received_ago_ms: int) -> str:
    rows = [row for row in report.rows if isinstance(row, Row)]
    unwatched = [row for row in rows if row.published_status == "unmonitored"]
    rows = [row for row in rows if row not in unwatched] + (unwatched if description.show_unmonitored else [])
    lines = "\n".join(_rows(rows, description, now, received_ago_ms))
    headline = headline_of(overview_of(report, Clocks(now, received_ago_ms), about=description.read()))
    return f"""<p>At {_instant(now)} UTC: <b>{escape(headline.line)}.</b> {escape(headline.advice)}</p>
<p>From the report of <time>{_instant(report.generated_at)}</time> UTC. Each row shows until when it is
valid: after that, nothing is known about it. The page asks for a newer report every 30 seconds where it can: if the
time above does not change, reload the page.</p>
<table>
<thead><tr><th scope="col">service</th><th scope="col">network</th><th scope="col">status then</th>
<th scope="col">reason</th><th scope="col">seen (UTC)</th><th scope="col">valid until (UTC)</th></tr></thead>
<tbody>
{lines}
</tbody>
</table>"""


def _rows(rows: list[Row], description: Description, now: int, received_ago_ms: int) -> Iterator[str]:
    about = description.read()
    titles = {service.name: service.title for service in description.services}
    for row in rows:
        effective = effective_status(row, Clocks(now, received_ago_ms))
        # The reason of a row that is too old belongs to another status.
        is_known = effective == row.published_status and row.reason in REASON_TEXTS
        chain = "all" if row.chain_id is None else about.chain_name(row.chain_id)
        service = escape(titles.get(row.service, row.service))
        cells = (
            escape(chain) + (" (test network)" if row.chain_id in about.test_networks else ""),
            _text(f"status.{effective}"),
            _text(f"reason.{row.reason}") if is_known else "",
            _instant(row.observed_at),
            _instant(row.expires_at),
        )
        yield f'<tr><th scope="row">{service}</th><td>{"</td><td>".join(cells)}</td></tr>'


def _instant(at: int | None) -> str:
    return "—" if at is None else format_second(at)[:-1].replace("T", " ")
