"""The Python reader over real HTTP, and over connections that misbehave."""

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from lookout_reader import Answer, NoAnswer, Row, Update, fetch_with_urllib, find_row, poll, poll_async
from tests.contract.pollers import NOON, report_text
from tests.integration.authority import Authority
from tests.wait import until
from tests.web import Answering, serving


class Handler(Answering):
    """Answers by path."""

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if name == "hangs-up":
            self.close_connection = True
        elif name == "breaks-off":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"{")
        elif name == "elsewhere":
            self.send(302, Location="http://:x/" if self.path.startswith("/nowhere") else "/portal")
        elif self.headers["If-None-Match"] == '"one"':
            self.send_response(304)
            self.end_headers()
        elif name == "busy":
            self.send(503, b'{"error":"unavailable"}', Retry_After="30")
        else:
            self.send(200, report_text(NOON).encode() if name == "liveness" else b"<html>", ETag='"one"')


@contextlib.contextmanager
def a_server(handler: type[Handler] = Handler, folder: Path | None = None) -> Iterator[str]:
    """Over TLS if there is a folder for its certificate."""
    tls = None
    if folder is not None:
        authority = Authority(folder)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(authority.vouch("127.0.0.1", days=1))
        authority.path.rename(folder / "authority.pem")
    with serving(handler, tls) as base:
        yield base


@pytest.mark.clause("C9", "C10")
def test_over_real_http_a_304_a_503_and_whatever_else_happens_are_answers_or_none() -> None:
    with a_server() as base:
        first = fetch_with_urllib(f"{base}/liveness", {"User-Agent": "a test"})
        assert isinstance(first, Answer)
        assert (first.http_code, first.etag, first.body) == (200, '"one"', report_text(NOON).encode())
        assert first.date is not None
        again = fetch_with_urllib(f"{base}/liveness", {"If-None-Match": '"one"'})
        assert isinstance(again, Answer)
        assert (again.http_code, again.body) == (304, b"")
        busy = fetch_with_urllib(f"{base}/busy", {})
        assert isinstance(busy, Answer)
        assert (busy.http_code, busy.retry_after) == (503, "30")
        portal = fetch_with_urllib(f"{base}/elsewhere", {})
        assert isinstance(portal, Answer)
        assert (portal.http_code, portal.body) == (200, b"<html>")
        assert fetch_with_urllib(f"{base}/hangs-up", {}) == NoAnswer("no answer: the connection was reset")
        for path in ("breaks-off", "nowhere/elsewhere"):
            assert fetch_with_urllib(f"{base}/{path}", {}) == NoAnswer()
    refused = "not reached: nothing listens at its address"
    assert fetch_with_urllib(f"{base}/liveness", {}) == NoAnswer(refused)


@pytest.mark.clause("C9", "C10")
def test_a_real_poll_gives_an_update_and_stops() -> None:
    stop = Event()
    with a_server() as base:
        updates = poll(base, "protocol", history=None, stop=stop)
        assert next(updates).report is None
        for update in updates:
            assert update.report is not None
            assert isinstance(find_row(update.report, "ppoi", 1), Row)
            stop.set()

        async def second() -> Update:
            updates = poll_async(base, "protocol", history=None)
            await anext(updates)
            return await anext(updates)

        assert asyncio.run(second()).report is not None


@contextlib.contextmanager
def a_dripping_server(*parts: bytes) -> Iterator[tuple[str, Event]]:
    """Sends the last part again and again, ten times a second; tells when its reader has gone."""
    gone = Event()

    def serve(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            for part in parts[:-1]:
                connection.sendall(part)
            for _ in range(200):
                connection.sendall(parts[-1])
                time.sleep(0.1)
            return
        gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", gone
        thread.join(30)


@pytest.mark.clause("C9")
@pytest.mark.parametrize(
    "parts",
    [
        pytest.param((b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), id="headers"),
        pytest.param((b"H", b"T"), id="a status line"),
        pytest.param((b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"{"), id="a body"),
        pytest.param((b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n"), id="chunks"),
    ],
)
def test_an_answer_that_drips_is_given_up_in_time_and_its_connection_closed(
    parts: tuple[bytes, ...],
) -> None:
    with a_dripping_server(*parts) as (base, gone):
        assert fetch_with_urllib(f"{base}/liveness", {}, timeout_s=0.5) == NoAnswer("no answer in time", "timeout")
        assert gone.wait(60)


def threads_under_way() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "lookout-reader"]


@pytest.mark.clause("C9")
def test_a_proxy_that_drips_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_dripping_server(b"H", b"T") as (base, gone):
        monkeypatch.setenv("https_proxy", base)
        given_up = fetch_with_urllib("https://liveness.example/liveness", {}, timeout_s=0.5)
        assert given_up == NoAnswer("no answer in time", "timeout")
        assert gone.wait(60)
        until(lambda: not threads_under_way(), "the thread has ended")


def a_redirecting_server(location: str, folder: Path | None = None) -> contextlib.AbstractContextManager[str]:
    class Redirects(Handler):
        def do_GET(self) -> None:
            self.send(302, Location=location)

    return a_server(Redirects, folder)


@pytest.mark.clause("C9")
@pytest.mark.parametrize("scheme", ["ftp", "file", "data", "gopher"])
def test_no_redirect_leads_to_another_scheme_and_nobody_there_is_asked(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0.2)
        monkeypatch.setenv(f"{scheme}_proxy", f"http://127.0.0.1:{elsewhere.getsockname()[1]}")
        location = f"{scheme}://127.0.0.1:{elsewhere.getsockname()[1]}/liveness"
        with a_redirecting_server(location) as base:
            refused = fetch_with_urllib(f"{base}/liveness", {}, timeout_s=2)
        assert not isinstance(refused, Answer) or refused.http_code == 302
        with pytest.raises(TimeoutError):
            elsewhere.accept()
        assert not threads_under_way()


@pytest.mark.clause("C9")
def test_a_redirect_from_https_to_http_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_server() as plain, a_redirecting_server(f"{plain}/liveness", tmp_path) as base:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
        assert fetch_with_urllib(f"{base}/liveness", {}) == NoAnswer()
        with a_redirecting_server(f"{plain}/liveness") as base:
            assert isinstance(fetch_with_urllib(f"{base}/liveness", {}), Answer)


@pytest.mark.clause("C9")
def test_a_redirect_to_another_host_is_not_followed() -> None:
    with a_server() as plain, a_redirecting_server(f"{plain.replace('127.0.0.1', 'localhost')}/liveness") as base:
        assert fetch_with_urllib(f"{base}/liveness", {}) == NoAnswer()


@pytest.mark.clause("C9")
def test_an_answer_of_more_than_16_mib_is_broken_off() -> None:
    with a_dripping_server(b"HTTP/1.1 200 OK\r\n\r\n", bytes(16 * 1024 * 1024 + 1)) as (base, gone):
        assert fetch_with_urllib(f"{base}/liveness", {}, 30) == NoAnswer("an answer that is too long", "too-long")
        assert gone.wait(60)


@pytest.mark.clause("C9")
def test_a_request_under_way_keeps_no_program_from_ending() -> None:
    code = """
import asyncio, atexit, sys, threading
from lookout_reader import poll_async

# Whoever keeps a program from ending has ended before this is called.
atexit.register(lambda: print([thread.name for thread in threading.enumerate()]))

async def main():
    updates = poll_async(sys.argv[1], "protocol")
    await anext(updates)
    try:
        await asyncio.wait_for(anext(updates), 0.5)
    except TimeoutError:
        print("given up")

asyncio.run(main())
"""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        base = f"http://127.0.0.1:{listening.getsockname()[1]}"
        ran = subprocess.run(
            [sys.executable, "-c", code, base], capture_output=True, text=True, check=False, timeout=60
        )
    told = "given up\n['MainThread', 'lookout-reader', 'lookout-reader']\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, told, "")
