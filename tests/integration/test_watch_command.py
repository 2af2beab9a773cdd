"""``lookout watch`` where its output is no terminal, and what it asks a deployment about itself."""

import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from lookout.cli.watch import add_about
from lookout.documents.reports import history_document, live_document
from lookout_reader import History, LiveReport, Update, parse_history, parse_report
from tests.builders import NOON
from tests.commands import LOOKOUT
from tests.descriptions import a_description
from tests.integration.served import a_ledger, a_server, publish

CELLS = 24


class Described:
    """A server whose answer to anything is ``answer``: a code and a body."""

    def __init__(self) -> None:
        described = self
        self.answer = (200, b"")
        self.asked = 0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                described.asked += 1
                http_code, body = described.answer
                self.send_response(http_code)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Silence."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.base = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def described() -> Iterator[Described]:
    server = Described()
    yield server
    server.close()


@pytest.mark.clause("C11")
def test_the_description_is_read_again_with_each_history_and_a_failure_keeps_the_last(described: Described) -> None:
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

    def updates() -> Iterator[Update]:
        for history, answer in steps:
            described.answer = answer
            for _ in range(3):  # live reports that arrive with no newer history
                yield Update(NOON, report, None, history, None, None, 0)

    shown = [1 in each.about.test_networks for each in add_about(updates(), described.base)]
    assert shown[::3] == shown[2::3] == [False, False, True, True, True, True, False]
    assert described.asked == 6, "once, and with each history after the first"


def test_into_a_pipe_all_columns_are_written_and_no_line_is_broken(tmp_path: Path) -> None:
    publish(tmp_path, a_ledger())
    with a_server(tmp_path) as server:
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80"}
        ended = subprocess.run(
            [LOOKOUT, "watch", "--once", server.base], capture_output=True, env=environment, timeout=100, check=True
        )
    lines = ended.stdout.decode().splitlines()
    (header,) = (line for line in lines if line.startswith("check "))
    assert header.rstrip().endswith("last 24 hours")
    strip_at = header.index("last 24 hours")
    (indexer,) = (line for line in lines if line.startswith("indexer chain 1 "))
    assert len(indexer) == strip_at + CELLS
    assert any(line.endswith("The history does not tell what is up now.") and "official" in line for line in lines)
