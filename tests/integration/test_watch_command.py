"""``lookout watch`` where its output is no terminal, and what it asks a deployment about itself."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lookout.cli.watch import add_about
from lookout.documents.reports import history_document, live_document
from lookout_reader import History, LiveReport, Update, parse_history, parse_report
from tests.commands import LOOKOUT
from tests.descriptions import a_description
from tests.integration.planted import a_listener
from tests.integration.served import Server, a_ledger
from tests.integration.terminal import CTRL_C, at_a_terminal

CELLS = 24


@pytest.mark.clause("C11")
def test_the_description_is_read_again_with_each_history_and_a_failure_keeps_the_last() -> None:
    ledger = a_ledger()
    report = parse_report(live_document(ledger.report()).body)
    assert isinstance(report, LiveReport)

    def a_history() -> History:
        history = parse_history(history_document(ledger.view()).body)
        assert isinstance(history, History)
        return history

    def about(is_test_network: bool) -> tuple[int, bytes]:
        return 200, a_description({1: "Mainnet"}, (1,) if is_test_network else ()).encode()

    histories = [None, *(a_history() for _ in range(6))]
    answers = [about(False), about(True), about(True), (503, b""), (404, b""), (200, b"<html>"), about(False)]
    steps = zip(histories, answers, strict=True)
    now, asked = answers[0], 0

    def describe(_asked: bytes) -> bytes:
        nonlocal asked
        asked += 1
        return b"HTTP/1.1 %d So\r\nContent-Length: %d\r\n\r\n" % (now[0], len(now[1])) + now[1]

    def updates() -> Iterator[Update]:
        nonlocal now
        for history, answer in steps:
            now = answer
            for _ in range(3):  # live reports that arrive with no newer history
                yield Update(report, None, history, None, None)

    with a_listener(describe) as base:
        shown = [1 in each.about.test_networks for each in add_about(updates(), base)]
    assert shown[::3] == shown[2::3] == [False, True, True, True, True, True, False]
    assert asked == 7, "with the first report, and with each history"


def test_into_a_pipe_all_columns_are_written_and_no_line_is_broken(served: Server) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"}
    ended = subprocess.run(
        [LOOKOUT, "watch", "--once", served.base], capture_output=True, env=environment, timeout=100, check=True
    )
    lines = ended.stdout.decode().splitlines()
    (header,) = (line for line in lines if line.startswith("check "))
    assert header.rstrip().endswith("last 24 hours")
    strip_at = header.index("last 24 hours")
    (indexer,) = (line for line in lines if line.startswith("indexer chain 1 "))
    assert len(indexer) == strip_at + CELLS
    assert any(line.endswith("The history does not say what is up now.") and "official" in line for line in lines)


def test_at_a_terminal_it_draws_the_screen_again_until_ctrl_c(served: Server, tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "watch", served.base, TERM="xterm") as terminal:
        for _ in range(2):
            terminal.wait_for("The history does not say")
        assert terminal.break_off(CTRL_C) == 0
    assert "Traceback" not in terminal.shown
