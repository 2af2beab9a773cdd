"""The page as it is sent: a frame, and in it the rows of one live report, ready-made.

A script takes the rows' place and keeps them up to date. Where none runs, they are what the server's clock makes of
them, and the page reloads itself (if scripts run but page.js has failed, reload.js does that); none is shown as plainly
healthy: nobody knows how long ago the page was loaded.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cache, lru_cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Final

from lookout.base.instants import format_instant
from lookout.public.about import Description
from lookout.public.notes import scope_text, time_text
from lookout.public.page.sources import drop_unused, join_modules, squeeze_script, strip_source
from lookout.public.page.style import status_rules
from lookout.public.page.texts import LANGUAGES, PageText, encode_script, read_catalogue
from lookout_reader.about import About
from lookout_reader.report import LiveReport, Metrics, Row, parse_report
from lookout_reader.rollup import CheckSummary, roll_up
from lookout_reader.status import effective_status
from lookout_reader.statuses import (
    BY_WORD,
    EFFECTIVE_STATUSES,
    STATUSES,
    TROUBLE_STATUSES,
    EffectiveStatus,
    StatusEntry,
)
from lookout_reader.words import NOTES, OTHERS

Judged = tuple[int, int]  # at which instant, and how long after the report arrived

_THEN, _NUMBERS, _SEEN, _UNTIL = "status then", "in numbers", "seen (UTC)", "counts until (UTC)"
_PARTIAL: Final = "some were heard, others were not"  # which is no more than a partial reading (C12)
# What a status stands for and what people can do, as the page's script has it (meaning.js).
_DEGRADED: Final = {
    "partial-coverage": "partial",
    "behind": "far-behind",
    "incomplete": "incomplete",
    "inconsistent": "incomplete",
}
_ADVICE: Final = {"ppoi": "proofs"} | dict.fromkeys(
    ("broadcasters", "messaging", "indexer", "hosted-indexer"), "transactions"
)
_NAMED: Final = 6
_FIRST: Final = ("one-view", "not-a-signal")  # the warnings that stand before the rows
_FOLDER: Final = "/assets"
_VERSION_LENGTH: Final = 12
JAVASCRIPT: Final = "text/javascript; charset=utf-8"
_TYPES: Final = {
    "page.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    # All modules in one, but for the one that finds out the language: it asks for the texts meanwhile.
    **dict.fromkeys(("page.js", "language.js", "reload.js"), JAVASCRIPT),
}


@cache
def assets() -> dict[str, tuple[str, bytes]]:
    """What the page loads, by path: media type and content.

    Each is in a folder named after what all of them hold, so that no cache mixes those of two versions; and outside of
    it for those that know no version: another site's badge, and reload.js, which has to come when nothing else does.
    """
    plain = _plain_assets()
    return plain | {path.replace(_FOLDER, _folder(), 1): asset for path, asset in plain.items()}


@cache
def _folder() -> str:
    return f"{_FOLDER}/{sha256(repr(_plain_assets()).encode()).hexdigest()[:_VERSION_LENGTH]}"


@cache
def _plain_assets() -> dict[str, tuple[str, bytes]]:
    bodies = {name: _read(name) for name in _TYPES}
    joined = join_modules(lambda name: _read(f"{name}.js"), "page", apart="language")
    bodies["page.js"] = squeeze_script(drop_unused(joined))
    bodies["page.css"] += status_rules()
    found = {
        f"{_FOLDER}/{name}": (media_type, strip_source(bodies[name]).encode()) for name, media_type in _TYPES.items()
    }
    return found | {f"{_FOLDER}/texts-{code}.js": (JAVASCRIPT, encode_script(code)) for code in LANGUAGES}


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def render(
    live: bytes | None, live_path: str, history_path: str, description: Description, now: int, received_ago_ms: int = 0
) -> bytes:
    """The page with this live report in it, judged at ``now`` and so long after it arrived, or without one."""
    text = _frame().substitute(
        live_path=escape(live_path),
        history_path=escape(history_path),
        assets=_folder(),
        shapes="\n".join(map(_symbol, STATUSES)),
        about=escape(description.encode().decode()),
        languages=_languages(),
        ready_made=_ready_made(live, description, (now, received_ago_ms)),
    )
    return text.encode()


@cache
def _frame() -> Template:
    return Template(_read("page.html"))


@cache
def _languages() -> str:
    return escape(json.dumps({code: read_catalogue(code).language for code in LANGUAGES}))


def _symbol(status: StatusEntry) -> str:
    return f'<symbol id="shape-{status.word}" viewBox="0 0 16 16">{status.look.svg}</symbol>'


def _ready_made(live: bytes | None, description: Description, judged: Judged) -> str:
    report = None if live is None else parse_report(live)
    rows = _report(report, description, judged) if isinstance(report, LiveReport) else _no_report(description)
    warnings = "\n".join(_warnings(description))
    title = "the wallet" if description.title == description.protocol else escape(description.title)
    return f"""<div class="ready-made">
<h1>Status of what {title} depends on</h1>
{rows}
<h2>What this does not say</h2>
<ul class="notes">
{warnings}
</ul>
{_operator(description)}</div>"""


def _notes(description: Description) -> str:
    """What the operator notes, with what it is about and when."""
    about = description.read()
    titles = {service.name: service.title for service in description.services}
    lines = []
    for note in about.notes:
        services, chains = [titles.get(each, each) for each in note.services], map(about.chain_name, note.chains)
        of = f"{scope_text(services, list(chains))}, {time_text(note.from_at, note.until_at)}"
        lines.append(f"<li><b>From the operator, about {escape(of)}</b>: {escape(note.text)}</li>\n")
    return f'<ul class="notes">\n{"".join(lines)}</ul>\n' if lines else ""


def _operator(description: Description) -> str:
    texts = (("Run by", description.operator), ("Contact:", description.contact))
    given = [f"{before} {escape(text)}" for before, text in texts if text]
    return f"<p>{'. '.join(given)}.</p>\n" if given else ""


def _first_warning() -> str:
    return f'<p class="warning">{" ".join(_text(f"warning.{each}") for each in _FIRST)}</p>\n'


def _warnings(description: Description) -> Iterator[str]:
    titles = {service.name: service.title for service in description.services}
    others = [service.name for service in description.services if service.run_by_others]
    for note in NOTES:
        services = others if note.id == OTHERS else note.services
        if services == [] or note.id in _FIRST:
            continue
        about = ", ".join(escape(titles.get(name, name)) for name in services or ())
        yield f"<li>{f'<b>{about}</b>: ' if about else ''}{escape(_text(f'warning.{note.id}'), quote=False)}</li>"


@cache
def _texts() -> dict[str, PageText]:
    return read_catalogue(LANGUAGES[0]).texts


@cache
def _text(key: str) -> str:
    text = _texts()[key]
    return text if isinstance(text, str) else text["other"]


def _no_report(description: Description) -> str:
    return f"""<p class="summary">There is no report that this page can read: none is stored yet, or it is of another
version.</p>
{_first_warning()}{_notes(description)}"""


def _report(report: LiveReport, description: Description, judged: Judged) -> str:
    about = description.read()
    at = f'<time datetime="{_instant(report.generated_at)}">{_words(report.generated_at)} UTC</time>'
    watched = _watched(report, description, about, judged)
    bad = [check for check in watched if check.effective != "current"]
    summary = escape(_summary(report, description, about, watched, bad))
    return f"""<p class="summary">By the report of {at}: <b>{summary}</b></p>
{_meanings(report, description, about, bad)}{_first_warning()}<p>Without its script this page cannot know how old that
is. Each row says until when it counts: after that time, nothing is known of it. The page asks for a newer report every
30 seconds where it can: if the time above stays the same, reload it.</p>
{_notes(description)}<table>
<thead><tr><th scope="col">service</th><th scope="col">chain</th><th scope="col">{_THEN}</th>
<th scope="col">{_NUMBERS}</th><th scope="col">{_SEEN}</th><th scope="col">{_UNTIL}</th></tr></thead>
<tbody>
{_rows(report, description, about, judged)}
</tbody>
</table>"""


def _watched(report: LiveReport, description: Description, about: About, judged: Judged) -> list[CheckSummary]:
    """What is watched outside test networks (C11), the worst first."""
    chains = about.counted_chains(row.chain_id for row in report.rows)
    rolled = roll_up(report, *judged, chains=chains)
    watched = [check for service in rolled.services for check in service.checks if check.effective != "unmonitored"]
    order = _order(description, about)
    return sorted(watched, key=lambda check: (EFFECTIVE_STATUSES.index(check.effective), order(check)))


def _summary(
    report: LiveReport, description: Description, about: About, watched: list[CheckSummary], bad: list[CheckSummary]
) -> str:
    """What was not well, or that none of them was seen not to be."""
    if not watched:
        is_some_watched = any(isinstance(row, Row) and row.published_status != "unmonitored" for row in report.rows)
        return "no mainnet is watched" if is_some_watched else "nothing is watched"
    if not bad and not report.unreadable_rows:
        checks = f"{len(watched)} check{'' if len(watched) == 1 else 's'}"
        return f"no problem seen in {checks} (those not watched and test networks are not counted)"
    titles = {service.name: service.title for service in description.services}
    named = []
    for check in bad[:_NAMED]:
        chain = "" if check.chain_id is None else f" on {about.chain_name(check.chain_id)}"
        named.append(f"{titles.get(check.service, check.service)}{chain}: {_text(f'status.{check.effective}')}")
    more = [f"{len(bad) - _NAMED} more"] if len(bad) > _NAMED else []
    unread = ["some rows of the report cannot be read"] if report.unreadable_rows else []
    return "; ".join(named + more + unread)


def _meanings(report: LiveReport, description: Description, about: About, bad: list[CheckSummary]) -> str:
    """What the troubles mean for people with a wallet, each once with its chains, and what they can do (C12)."""
    titles = {service.name: service.title for service in description.services}
    reasons = {(row.service, row.chain_id): row.reason for row in report.rows if isinstance(row, Row)}
    places: dict[str, list[str]] = {}
    for check in bad:
        key = f"means.{check.service}.{_situation(check.effective, reasons.get((check.service, check.chain_id)))}"
        if key in _texts():
            chain = (
                titles.get(check.service, check.service) if check.chain_id is None else about.chain_name(check.chain_id)
            )
            places.setdefault(key, []).append(chain)
    lines = [f"<li><b>{escape(_some(names))}</b>: {_text(key)}</li>\n" for key, names in places.items()]
    failing = dict.fromkeys(_ADVICE.get(check.service) for check in bad if check.effective in TROUBLE_STATUSES)
    advice = " ".join(_text(f"advice.{each}") for each in failing if each is not None)
    meaning = f'<ul class="notes">\n{"".join(lines)}</ul>\n' if lines else ""
    return meaning + (f'<p class="advice">{advice}</p>\n' if advice else "")


def _situation(effective: str, reason: str | None) -> str | None:
    """None for a reason that nobody knows: then the status alone is said (C5)."""
    if effective == "unavailable":
        return effective if reason == "unreachable" else None
    return "behind" if effective == "catching-up" else _DEGRADED.get(reason or "") if effective == "degraded" else None


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED] + ([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []))


def _rows(report: LiveReport, description: Description, about: About, judged: Judged) -> str:
    titles = {service.name: service.title for service in description.services}
    shown = [(effective_status(row, *judged), row) for row in report.rows if isinstance(row, Row)]
    if not description.show_unmonitored:
        shown = [(effective, row) for effective, row in shown if row.published_status != "unmonitored"]
    order = _order(description, about)
    shown.sort(key=lambda each: (_trouble_first(each[0]), order(each[1])))
    return "\n".join(
        _row(row, BY_WORD[effective], titles.get(row.service, row.service), _chain(row.chain_id, about))
        for effective, row in shown
    )


def _trouble_first(effective: EffectiveStatus) -> int:
    """The place of a status among the rows; what is well and what nobody watches stand together, after all others."""
    return len(STATUSES) if effective in ("current", "unmonitored") else EFFECTIVE_STATUSES.index(effective)


def _order(description: Description, about: About) -> Callable[[Row | CheckSummary], tuple[int, int, int]]:
    """The page's order of services and chains, which is the configuration's."""
    services = {service.name: place for place, service in enumerate(description.services)}
    chains: dict[int | None, int] = {None: -1} | {chain_id: place for place, chain_id in enumerate(about.chains)}
    return lambda row: (
        services.get(row.service, len(services)),
        chains.get(row.chain_id, len(chains)),
        row.chain_id or 0,
    )


@lru_cache(4096)  # from one report to the next few rows change
def _row(row: Row, status: StatusEntry, title: str, chain: str) -> str:
    is_partial = status.word == "degraded" and row.reason == "partial-coverage"
    return (
        f'<tr><th scope="row">{escape(title)}</th><td>{escape(chain)}</td>'
        f'<td><svg class="shape" aria-hidden="true"><use href="#shape-{status.word}"/></svg> '
        f"<b>{_text(f'status.{status.word}')}</b>: {_PARTIAL if is_partial else status.past_sentence}</td>"
        f'<td data-label="{_NUMBERS}">{_numbers(row.metrics)}</td>'
        f'<td data-label="{_SEEN}">{_words(row.observed_at)}</td>'
        f'<td data-label="{_UNTIL}">{_words(row.expires_at)}</td></tr>'
    )


def _chain(chain_id: int | None, about: About) -> str:
    if chain_id is None:
        return "shared by the chains"
    name = about.chain_name(chain_id)
    return f"{name} (test network)" if chain_id in about.test_networks else name


def _numbers(metrics: Metrics) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in asdict(metrics).items() if number is not None)


def _instant(at: int | None) -> str:
    return "" if at is None else format_instant(at)


def _words(at: int | None) -> str:
    """An instant to the second, for people."""
    return "—" if at is None else format_instant(at)[:19].replace("T", " ")
