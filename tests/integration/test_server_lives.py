"""A server's troubles: with its port, its store and its signals."""

import os
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from tests.integration.raw import (
    STOP_WITHIN_S,
    a_raw_server,
    a_request,
    metrics,
    store,
)
from tests.integration.served import HISTORY
from tests.wait import until

FAILS: Final = "the store cannot be read; serving what was read last"
WORKS: Final = "the store can be read again"
TOO_LONG: Final = "the history has been unreadable for too long; answering 503"
LARGE: Final = b'{"history":"' + b"c" * 20_000_000 + b'"}'  # more than the system keeps for a reader
OFTEN: Final = "history_unreadable_s = 8\n"  # the store is then read at least every two seconds


def filled(folder: Path) -> Path:
    store(folder, live=b'{"live":1}', history=b'{"history":1}')
    return folder


@pytest.mark.clause("A11", "A12")
def test_a_store_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    with a_raw_server(tmp_path) as server:
        live, history = server.ask(), server.ask("GET", HISTORY)
        assert (live.http_code, live.body) == (503, b'{"error":"the liveness report is unavailable"}')
        assert live.ours["cache-control"] == history.ours["cache-control"] == "no-store"
        assert live.ours["retry-after"] == "15"
        assert (history.http_code, history.ours["retry-after"]) == (503, "30")
        assert server.ask("GET", HISTORY, "If-None-Match: *").http_code == 503
        assert server.ask("HEAD").body == b""
        filled(tmp_path)
        stored_at = time.monotonic()
        until(lambda: server.ask().http_code == 200 and server.ask("GET", HISTORY).http_code == 200, "both")
        assert time.monotonic() - stored_at < 30
        assert server.logged(FAILS) == 0
        assert server.logged("there is no report in the store yet; answering 503") == 1
        assert server.logged("the first report was loaded") == 1


def vanish(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def be_replaced_by_text(path: Path) -> None:
    vanish(path)
    path.with_name("new").write_text("no database\n" * 500)
    path.with_name("new").replace(path)


def be_emptied(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.clause("A11", "A12")
def test_whatever_happens_to_the_file_the_last_documents_are_served(tmp_path: Path) -> None:
    path, body = tmp_path / "lookout.db", b'{"number":0}'
    store(tmp_path, live=body, history=body)
    with a_raw_server(tmp_path, server=OFTEN, with_admin=True) as server:
        for number, trouble in enumerate((be_emptied, vanish), 1):
            trouble(path)
            until(lambda: server.logged(FAILS) == number, f"failure {number} is logged")  # noqa: B023
            assert server.ask().body == server.ask("GET", HISTORY).body == body
            vanish(path)
            body = b'{"number":%d}' % number
            store(tmp_path, live=body, history=body)
            until(lambda: server.ask().body == server.ask("GET", HISTORY).body == body, "the new ones")  # noqa: B023
            until(lambda: server.logged(WORKS) == number, "it is logged that all is well")  # noqa: B023
            assert server.logged(FAILS) == number
        assert metrics(server)["lookout_store_read_errors_total",] >= 2


@pytest.mark.clause("A11", "A12")
def test_a_history_that_was_unreadable_for_too_long_is_503_and_the_report_is_not(tmp_path: Path) -> None:
    path = filled(tmp_path) / "lookout.db"
    with a_raw_server(tmp_path, server="history_unreadable_s = 1\n") as server:
        be_replaced_by_text(path)
        until(lambda: server.ask("GET", HISTORY).http_code == 503, "the history is given up")
        answer = server.ask("GET", HISTORY)
        assert (answer.ours["retry-after"], answer.ours["cache-control"]) == ("30", "no-store")
        assert server.ask().body == b'{"live":1}'
        assert [line["event"] for line in server.log()][-2:] == [FAILS, TOO_LONG]
        vanish(path)
        filled(tmp_path)
        until(lambda: server.ask("GET", HISTORY).http_code == 200, "it is back")


@pytest.mark.parametrize("end", ["SIGTERM", pytest.param("Ctrl-C", marks=pytest.mark.long)])
def test_signals_end_it_soon_and_leave_nothing_behind(tmp_path: Path, end: str) -> None:
    with (
        a_raw_server(filled(tmp_path), with_admin=True) as server,
        server.connect() as reader,
    ):
        reader.sendall(a_request(close=False))
        assert reader.recv(65_536).startswith(b"HTTP/1.1 200 OK")  # and now it stays connected
        if end == "SIGTERM":
            server.process.terminate()
        else:
            os.killpg(server.process.pid, signal.SIGINT)
        assert server.process.wait(STOP_WITHIN_S) == 0
    assert [line["event"] for line in server.log()][-1] == "stopped"


def test_the_end_waits_for_answers_that_were_begun_but_not_for_ever(tmp_path: Path) -> None:
    store(tmp_path, live=b'{"live":1}', history=LARGE)
    with a_raw_server(tmp_path) as server, server.connect() as half, server.connect() as slow, server.connect() as deaf:
        half.sendall(b"GET /api/v1/protocol/liveness HTTP/1.1\r\nHost:")
        for begun in (slow, deaf):
            begun.sendall(a_request("GET", HISTORY, close=False))
            assert begun.recv(10) == b"HTTP/1.1 2"
        server.process.send_signal(signal.SIGTERM)
        assert half.recv(10) == b"", "what was not asked to the end is not waited for"
        assert b"".join(iter(lambda: slow.recv(65_536), b"")).endswith(LARGE)
        assert server.process.wait(STOP_WITHIN_S) == 0
    end = [(line["event"], line["level"]) for line in server.log()][-2:]
    assert end == [("requests that were not finished were cut off", "info"), ("stopped", "info")]


def test_the_end_resets_no_connection_whose_requests_were_not_all_read(tmp_path: Path) -> None:
    store(tmp_path, live=b'{"live":1}', history=LARGE)
    with a_raw_server(tmp_path) as server, server.connect() as pipelining:
        pipelining.sendall(a_request("GET", HISTORY, close=False) * 400)
        assert pipelining.recv(10) == b"HTTP/1.1 2"
        server.process.send_signal(signal.SIGTERM)
        answers = b"".join(iter(lambda: pipelining.recv(65_536), b""))  # a reset would be an error
        assert answers.endswith(LARGE)
        assert server.process.wait(STOP_WITHIN_S) == 0
