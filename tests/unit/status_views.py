"""All places in which a status shows, as JSON: for a process that has a status of its own in the reader's table."""

import json
import sys
from io import StringIO
from pathlib import Path

import msgspec
from rich.console import Console

from lookout.config.alerts import AlertRule
from lookout.core.model import Metrics, Report, Row, Status
from lookout.core.strip import CHARACTERS, bucket_character
from lookout.documents.reports import build_schemas, live_document
from lookout.public.feeds import make_feed_files
from lookout.public.page import html
from lookout.public.page.assets import load_assets
from lookout.public.picture import Names
from lookout.public.terminal import Shown, View, draw_screen
from lookout_reader import LiveReport, Update, parse_report
from lookout_reader.statuses import EFFECTIVE_STATUSES
from tests.builders import INDEXER, NOON, SECOND
from tests.descriptions import a_description, an_about
from tools.statuses import fill_in


def views(status: Status) -> dict[str, object]:
    row = Row(INDEXER, status, "behind", NOON - SECOND, NOON - SECOND, NOON + 149 * SECOND, Metrics())
    live = live_document(Report(NOON, (row,))).body
    made = make_feed_files(Names("protocol", an_about()), live, None, NOON, 0)
    report = parse_report(live)
    assert isinstance(report, LiveReport)
    terminal = Console(file=StringIO(), width=120)
    shown = Shown("here", an_about(), Update(NOON, report, None, None, None, None, 0))
    terminal.print(draw_screen(shown, NOON, View(120, False)))
    assert isinstance(terminal.file, StringIO)
    return {
        "characters": CHARACTERS,
        "bucket": bucket_character({CHARACTERS[status]: 60_000, "c": 240_000}, 60_000),
        "severity": EFFECTIVE_STATUSES,
        "alerts from": msgspec.convert({"from": status}, AlertRule).from_,
        "terminal": terminal.file.getvalue(),
        "badge": str(made.badge_of_row("/badge/indexer/1.svg")),
        "feeds": {path: file and file.body.decode() for path, file in made.files.items()},
        "page": html.render(live, "/live", "/history", a_description(), NOON).decode(),
        "style": load_assets()["/assets/page.css"][1].decode(),
        "schemas": json.dumps(build_schemas()),
    }


if __name__ == "__main__":
    word, reader = sys.argv[1:]
    for path, content in fill_in(Path(reader)).items():
        path.write_text(content, encoding="utf-8")
    print(json.dumps(views(word)))  # type: ignore[arg-type]  # noqa: T201
