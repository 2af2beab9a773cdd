"""Hostile logs: replay gives whole documents, or a sentence that names the line."""

import io
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from lookout.config.file import read_config
from lookout.core.plan import Plan
from lookout.documents.reports import history_document, live_document
from lookout.replay.replay import LogError, Replay, read_log, run_log
from lookout_reader import History, LiveReport, parse_history, parse_report
from tests.fuzz.changes import changed_bytes, changed_json
from tests.fuzz.hunt import Found, Kind

_VECTORS: Final = Path(__file__).parent.parent.parent / "tests" / "data" / "vectors"
_LONGEST_S: Final = 20.0
_CONFIG: Final = _VECTORS / "replay.toml"
_CHANGES: Final = (*("line",) * 12, *("another", "none", "bytes") * 3, "year")
_ODD_LINES: Final = (b"\n", b'{"at":5,"x":' + b"[" * 5_000 + b"\n")
_REASON: Final = re.compile(r"line [0-9]+: .+|the log is empty: .+")


def judge(plan: Plan, case: bytes) -> str:
    replay = Replay(plan)
    warnings: list[str] = []
    began = time.thread_time()
    try:
        run_log(read_log(io.BytesIO(case), warnings), replay)
    except LogError as error:
        if not _REASON.fullmatch(str(error)):
            raise Found(f"a refusal that says not where or why: {str(error)[:200]!r}", case) from None
        return _words(str(error))
    live, history = live_document(replay.ledger.report()).body, history_document(replay.ledger.view()).body
    if time.thread_time() - began > _LONGEST_S:
        raise Found(f"it took {time.thread_time() - began:.1f} s", case)
    _check_documents(live, history, case)
    return f"{len(history)} {len(warnings)} {replay.skipped}"


def _check_documents(live: bytes, history: bytes, case: bytes) -> None:
    report, past = parse_report(live), parse_history(history)
    if not isinstance(report, LiveReport) or report.unreadable_rows:
        raise Found("the live report it led to cannot be read", case)
    if not isinstance(past, History) or past.unreadable_rows:
        raise Found("the history it led to cannot be read", case)


def _words(text: str) -> str:
    return re.sub(r"[^a-z; ]|\".*?\"|'.*?'", "", text.partition("line")[2].lower())[:60]


@st.composite
def _logs(draw: st.DrawFn) -> bytes:
    recorded = [file.read_bytes().splitlines(keepends=True)[:120] for file in sorted(_VECTORS.glob("*.jsonl"))]
    lines = list(draw(st.sampled_from((*recorded, *(each[:6] for each in recorded)))))
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(_CHANGES)):
            case "line":
                lines[at] = draw(changed_json([lines[at]])) + draw(st.sampled_from((b"\n", b"\r\n", b"")))
            case "year":
                lines[at] = re.sub(rb"20[0-9][0-9]-", draw(st.sampled_from((b"1970-", b"9999-"))), lines[at])
            case "another":
                lines.insert(at, draw(st.sampled_from((*lines, *draw(st.sampled_from(recorded)), *_ODD_LINES))))
            case "none" if len(lines) > 1:
                del lines[at]
            case _:
                lines[at] = draw(changed_bytes(lines[at]))
    return b"".join(lines)


@contextmanager
def _judging() -> Iterator[Callable[[bytes], str]]:
    yield partial(judge, read_config(_CONFIG).plan())


LOGS: Final = Kind(_logs(), _judging)
