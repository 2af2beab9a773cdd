"""``lookout verify`` as a command, and what it makes of strangers."""

import json
import re
import ssl
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from lookout.verify.visit import VisitOptions
from tests.integration.authority import Authority
from tests.integration.broken_documents import sets
from tests.integration.planted import Asked, Sent, a_deployment, a_listener, documents, resources
from tests.integration.served import Server, a_free_port
from tests.integration.visits import NOT_SEEN, clauses, command, found


def endless(_raw: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n\r\n"
    while True:
        yield b" " * 65_536


def drops(_raw: bytes) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
    for _ in range(200):
        time.sleep(0.1)
        yield b" "


def a_page(_raw: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<!doctype html>"


@pytest.mark.parametrize(
    ("answer", "broken"),
    [
        pytest.param(lambda _: b"\x16\x03\x01\x00\xff" * 1000, "A1", id="garbage"),
        pytest.param(endless, "A1", id="an endless body"),
        pytest.param(drops, "A1", id="a body that comes too slowly"),
        pytest.param(a_page, "A3 A4 R1 H1 E1", id="a page of HTML"),
    ],
)
def test_a_stranger_is_reported_in_bounded_time(answer: Callable[[bytes], Any], broken: str) -> None:
    with a_listener(answer) as base:
        findings = found(base, VisitOptions(timeout_s=0.2 if answer is drops else 20))
    assert set(broken.split()) <= clauses(findings, "fail")
    assert len(findings) == 103


def test_a_server_that_stops_answering_is_not_asked_for_long() -> None:
    real = resources(*documents())
    asked = count()

    def hangs(_asked: Asked, _sent: Sent) -> None:
        if next(asked) > 3:
            time.sleep(3)

    with a_deployment(lambda _: real, hangs) as deployment:
        findings = found(deployment.base, VisitOptions(timeout_s=0.5))
        assert deployment.counts.total() < 10
    assert "A15" in clauses(findings, "fail")
    assert {"A1", "A2", "A7", "E1", "H1"} & clauses(findings, "pass") == set()


def test_nobody_there_is_a_failure_in_a_sentence() -> None:
    result = command(f"http://127.0.0.1:{a_free_port()}", "--json")
    report = json.loads(result.stdout)
    (failure,) = (finding for finding in report["findings"] if finding["verdict"] == "fail")
    assert failure == {"clause": "A1", "verdict": "fail", "what": failure["what"]}
    assert failure["what"].endswith("GET /api/v1/protocol/liveness: not reached: nothing listens at its address")
    assert result.exit_code == 1
    assert result.stderr == ""


def test_the_command_shows_what_fails_and_a_line_for_the_rest(served: Server) -> None:
    result = command(served.base, "--protocol", "other", COLUMNS="120")
    assert result.exit_code == 1, result.stdout
    shown = re.sub(r"[^\w-]+", " ", result.stdout)  # its table breaks lines
    assert "liveness gets 404 instead of 200" in shown
    assert "is this the base address and --protocol right" in shown
    assert "could not tell" not in result.stdout
    *_, last, unseen = result.stdout.splitlines()
    rest = r"\d+ pass, 0 undecided, \d+ not seen \(--all lists them\)"
    assert re.fullmatch(f"Of 103 clauses 1 fail, {rest}", last)
    assert unseen.startswith("Not seen here, though another visit may show them: M5, R1, R2, ")


def test_a_healthy_server_is_one_line_and_with_all_every_clause(served: Server) -> None:
    short, full = command(served.base), command(served.base, "--all", COLUMNS="120")
    counts = f"{103 - len(NOT_SEEN)} pass, 0 undecided, {len(NOT_SEEN)} not seen"
    unseen = "M5, R14, S4, S8, S18, S21, H14, H16, A11, A12, E2, E3, W4, W5, W7"
    report = json.loads(command(f"{served.base}/", "--json").stdout)
    assert report["url"] == served.base
    assert list(report) == ["url", "protocol", "at", "findings", "summary", "doubts"]
    passed = {"pass": 103 - len(NOT_SEEN), "not seen": len(NOT_SEEN)}
    assert report["summary"] == {"fail": 0, "could not tell": 0, **passed}
    last = f"Not seen here, though another visit may show them: {unseen}\n"
    assert short.stdout == f"Of 103 clauses 0 fail, {counts} (--all lists them)\n{last}"
    for text in (" pass ", " not seen ", f"fail, {counts}\n"):
        assert text in full.stdout


def test_no_control_character_of_a_server_reaches_the_terminal() -> None:
    reason = "\x1b[31mred\x1b[0m \x9b31m \u202e"
    live, history = documents(sets("indexer", 1, reason=reason, observedAt=None, lastSuccessAt=None))
    with a_deployment(lambda _: resources(live, history)) as deployment:
        result = command(deployment.base, "--all", COLUMNS="200")
    assert not set("\x1b\x9b\u202e") & set(result.stdout)
    assert "31mred" in result.stdout


def test_https_is_asked_only_with_a_trusted_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.vouch("127.0.0.1", days=1))
    with a_listener(a_page, tls) as base:
        unknown = command(base, "--json")
        trusted = command(base, "--json", SSL_CERT_FILE=str(authority.path))
    assert "no secure connection (unknown authority)" in unknown.stdout
    assert "certificate" not in trusted.stdout
    assert "content-type: 'text/html'" in trusted.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("127.0.0.1:8080",),
        ("http://user:secret@127.0.0.1",),
    ],
)
def test_wrong_use_is_a_sentence_and_exit_code_2(arguments: tuple[str, ...]) -> None:
    result = command(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert result.stderr
