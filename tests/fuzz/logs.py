"""Hostile logs to ``lookout replay``: whole documents, or a sentence that names the line, and nothing written."""

import io
import re
import time
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from random import Random
from typing import Final
from zlib import crc32

from click.testing import CliRunner

from lookout.cli import main
from lookout.config.file import read_config
from lookout.core.plan import Plan
from lookout.documents.reports import history_document, live_document
from lookout.replay.replay import LogError, Replay, read_log, run_log
from lookout_reader import History, LiveReport, parse_history, parse_report
from tests.fuzz.fuzzer import Judge, Kind, Verdict, catch_errors, judge_in_a_folder
from tests.fuzz.mutation import change_bytes, change_json

_VECTORS: Final = Path(__file__).parent.parent.parent / "tests" / "data" / "vectors"
_LONGEST_S: Final = 20.0
_CONFIG: Final = _VECTORS / "replay.toml"
_COMMAND_EVERY: Final = 50
_REASON: Final = re.compile(r"line [0-9]+: .+|the log is empty: .+")
_REFUSED: Final = re.compile(rf"lookout: \S*log\.jsonl: (?:{_REASON.pattern})")
_WARNED: Final = re.compile(r"lookout: warning: \S*log\.jsonl: .+")


def judge_case(plan: Plan, folder: Path, case: bytes) -> Verdict:
    """By the rules alone, which is quick; some, by the command itself."""
    return judge_by_command(folder, case) if crc32(case) % _COMMAND_EVERY == 0 else judge_by_rules(plan, case)


@catch_errors
def judge_by_rules(plan: Plan, case: bytes) -> Verdict:
    replay = Replay(plan)
    warnings: list[str] = []
    began = time.thread_time()
    try:
        run_log(read_log(io.BytesIO(case), warnings), replay)
        live, history = live_document(replay.ledger.report()).body, history_document(replay.ledger.view()).body
    except LogError as error:
        if not _REASON.fullmatch(str(error)):
            return Verdict("refused", f"a refusal that says not where or why: {str(error)[:200]!r}")
        return Verdict(_words(str(error)))
    if time.thread_time() - began > _LONGEST_S:
        return Verdict("slow", f"it took {time.thread_time() - began:.1f} s")
    return _documents(live, history) or Verdict(f"{len(history)} {len(warnings)} {replay.skipped}")


def judge_by_command(folder: Path, case: bytes) -> Verdict:
    log, live, history = (folder / name for name in ("log.jsonl", "live.json", "history.json"))
    log.write_bytes(case)
    for output in (live, history):
        output.unlink(missing_ok=True)
    options = [str(log), "-c", str(_CONFIG), "--live", str(live), "--history", str(history)]
    ran = CliRunner().invoke(main, ["replay", *options])
    said = ran.stderr.splitlines()
    if ran.exit_code == 2:
        if live.exists() or history.exists() or len(said) != 1 or not _REFUSED.fullmatch(said[0]):
            return Verdict("refused", f"it wrote something, or says not where or why: {ran.stderr[:200]!r}")
        return Verdict(_words(said[0]))
    if ran.exit_code != 0:
        died = f"{type(ran.exception).__name__}: {str(ran.exception)[:100]}"
        return Verdict("died", f"exit code {ran.exit_code}, {died}")
    if not all(_WARNED.fullmatch(line) for line in said):
        return Verdict("warned", f"warnings that say not where or why: {ran.stderr[:200]!r}")
    return _documents(live.read_bytes(), history.read_bytes()) or Verdict(f"command {len(said)}")


def _documents(live: bytes, history: bytes) -> Verdict | None:
    """What is wrong with the documents that a log led to, if anything."""
    report, past = parse_report(live), parse_history(history)
    if not isinstance(report, LiveReport) or report.unreadable_rows:
        return Verdict("unreadable", "the live report it led to cannot be read")
    if not isinstance(past, History) or past.unreadable_rows:
        return Verdict("unreadable", "the history it led to cannot be read")
    return None


def _words(text: str) -> str:
    return re.sub(r"[^a-z; ]|\".*?\"|'.*?'", "", text.partition("line")[2].lower())[:60]


def _seeds() -> list[bytes]:
    logs = [file.read_bytes().splitlines(keepends=True)[:120] for file in sorted(_VECTORS.glob("*.jsonl"))]
    return [b"".join(lines) for lines in logs] + [b"".join(lines[:6]) for lines in logs]


def _change(chance: Random, case: bytes, other: bytes) -> bytes:
    lines = case.splitlines(keepends=True)
    if not lines or chance.random() < 0.1:
        return change_bytes(chance, case, other)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at = chance.randrange(len(lines))
        how = chance.randrange(40)
        if how < 25:
            lines[at] = change_json(chance, lines[at].rstrip(b"\r\n"), other) + chance.choice(
                (b"\n", b"\n", b"\r\n", b"")
            )
        elif how == 25:  # a silence of years takes long to live through
            lines[at] = re.sub(
                rb"20[0-9][0-9]-", chance.choice((b"1970-", b"2030-", b"9998-", b"9999-", b"2026-")), lines[at]
            )
        elif how < 33:
            lines.insert(
                at,
                chance.choice(
                    (*lines, *other.splitlines(keepends=True), b"\n", b'{"at":5,"x":' + b"[" * 5_000 + b"\n")
                ),
            )
        elif len(lines) > 1:
            del lines[at]
    return b"".join(lines)


def _judging() -> AbstractContextManager[Judge]:
    return judge_in_a_folder(partial(judge_case, read_config(_CONFIG).plan()))


LOGS: Final = Kind("observation logs", _seeds, _change, _judging)
