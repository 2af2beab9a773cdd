"""``lookout verify``: nothing found in the real server, everything found in broken ones."""

import gzip
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from lookout.verify.visit import MOST_PER_PATH, Wishes
from tests.integration.broken_documents import BROKEN_DOCUMENTS, row, top
from tests.integration.broken_replies import BROKEN_REPLIES
from tests.integration.planted import (
    Asked,
    Edit,
    Json,
    Sent,
    a_deployment,
    documents,
    ledger,
    resources,
)
from tests.integration.served import HISTORY, LIVE, a_free_port, a_server, publish
from tests.integration.verifying import UNTOLD, clauses, found
from tests.waiting import until

VARNISHD: Final = shutil.which("varnishd")
UNTOLD_BEHIND_A_CACHE: Final = UNTOLD | {"A5", "A15"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    publish(folder, ledger())
    with a_server(folder) as server:
        yield server.base


def test_finds_no_failure_in_the_real_server_and_says_what_it_could_not_tell(served: str) -> None:
    findings = found(served)
    assert [finding for finding in findings if finding.verdict == "fail"] == []
    assert clauses(findings, "could not tell") == UNTOLD
    assert len({finding.clause for finding in findings}) == len(findings) == 92


def test_tries_the_rate_limit_of_the_real_server_when_told_to(tmp_path: Path) -> None:
    publish(tmp_path, ledger())
    with a_server(tmp_path, rate_limit_per_minute=120) as server:
        findings = found(server.base, Wishes(timeout_s=20, rate_limit=True))
        again = found(server.base)
    (limit,) = (finding for finding in findings if finding.clause == "E2")
    assert limit.verdict == "pass"
    assert limit.what.startswith("429 after 121 requests")
    assert clauses(findings, "fail") == clauses(again, "fail") == set()
    assert {"A1", "A6", "R1", "E2"} <= clauses(again, "could not tell"), "the caller is refused now"


def test_finds_that_there_is_no_rate_limit(served: str) -> None:
    findings = found(served, Wishes(timeout_s=20, rate_limit=True))
    assert clauses(findings, "fail") == {"E2"}


@pytest.mark.parametrize("name", BROKEN_REPLIES)
def test_finds_a_broken_reply_and_nothing_else(name: str) -> None:
    breaks, broken = BROKEN_REPLIES[name]
    real = resources(*documents())
    with a_deployment(lambda _: real, breaks) as deployment:
        findings = found(deployment.base)
    failures = [finding for finding in findings if finding.verdict == "fail"]
    assert {finding.clause for finding in failures} == set(broken.split()), failures


@pytest.mark.parametrize("name", BROKEN_DOCUMENTS)
def test_finds_a_broken_document_and_nothing_else(name: str) -> None:
    edit, broken = BROKEN_DOCUMENTS[name]
    real = resources(*documents(edit))
    with a_deployment(lambda _: real) as deployment:
        findings = found(deployment.base)
    failures = [finding for finding in findings if finding.verdict == "fail"]
    assert {finding.clause for finding in failures} == set(broken.split()), failures


def new_things(live: Json, history: Json) -> None:
    live["motd"] = history["motd"] = "hello"
    row(live, "indexer", 1).update(status="paused", reason="on-holiday", colour="blue")
    row(live, "indexer", 137)["metrics"]["speed"] = 1.5
    live["checks"].append(dict(row(live, "messaging", None), service="oracle", chainId=5))
    history["rows"].append(dict(row(history, "messaging", None), service="oracle", chainId=5))
    row(history, "messaging", None)["uptime"]["90d"] = 0.5
    same = row(history, "hosted-indexer", 1)
    same["buckets"] = f"x{same['buckets'][1:]}"


@pytest.mark.parametrize(
    ("edit", "doubted"),
    [
        pytest.param(new_things, {"R2", "H5"}, id="new fields, statuses, services, characters and windows"),
        pytest.param(top("live", schemaVersion=2), {"R1", "R2", "H2"}, id="a new version of the live report"),
        pytest.param(top("history", schemaVersion=2), {"H1", "H3", "H9"}, id="a new version of the history"),
    ],
)
def test_what_may_be_new_is_no_failure(edit: Edit, doubted: set[str]) -> None:
    real = resources(*documents(edit))
    with a_deployment(lambda _: real) as deployment:
        findings = found(deployment.base)
    assert clauses(findings, "fail") == set()
    assert clauses(findings, "could not tell") >= doubted


def moved_on(number: int) -> tuple[bytes, bytes]:
    """Both documents, published anew ``number`` milliseconds later."""

    def edit(live: Json, history: Json) -> None:
        for document in (live, history):
            document["generatedAt"] = f"{document['generatedAt'][:20]}{number % 1000:03}Z"

    return documents(edit)


def test_finds_an_etag_that_stays_while_the_body_changes() -> None:
    both = [resources(*moved_on(number), tag=lambda _: '"0123456789abcdef"') for number in range(2)]
    with a_deployment(lambda number: both[number % 2]) as deployment:
        assert clauses(found(deployment.base), "fail") == {"A4"}


def test_finds_an_etag_that_changes_while_the_body_stays() -> None:
    both = [resources(*documents(), tag=lambda _, n=number: f'"0123456789abcde{n}"') for number in range(2)]  # type: ignore[misc]
    with a_deployment(lambda number: both[number // 4 % 2]) as deployment:
        assert clauses(found(deployment.base), "fail") == {"A4"}


def test_a_document_that_changes_meanwhile_is_no_failure() -> None:
    both = [resources(*moved_on(number)) for number in range(2)]
    with a_deployment(lambda number: both[number // 7 % 2]) as deployment:
        findings = found(deployment.base)
    assert clauses(findings, "fail") == set()
    assert clauses(findings, "could not tell") == UNTOLD - {"H16"}


def test_finds_that_generated_at_is_the_instant_of_serving() -> None:
    each = [resources(*moved_on(number)) for number in range(100)]  # before: it must not take long to serve them
    with a_deployment(lambda number: each[number]) as deployment:
        assert clauses(found(deployment.base), "fail") == {"M5", "H14"}


def test_finds_an_ended_bucket_that_changes() -> None:
    def edit(_live: Json, history: Json) -> None:
        same = row(history, "hosted-indexer", 1)
        same["buckets"] = f"-{same['buckets'][1:]}"
        history["generatedAt"] = f"{history['generatedAt'][:20]}999Z"

    both = [resources(*moved_on(0)), resources(*documents(edit))]
    with a_deployment(lambda number: both[number // 30 % 2]) as deployment:
        assert clauses(found(deployment.base), "fail") == {"H16"}


def test_watches_both_documents_move() -> None:
    each = [resources(*moved_on(number)) for number in range(120)]
    began = time.monotonic()
    with a_deployment(lambda _: each[min(119, int(time.monotonic() - began))]) as deployment:
        findings = found(deployment.base, Wishes(timeout_s=20, wait_s=2.2))
        assert max(deployment.counts.values()) <= MOST_PER_PATH
    assert clauses(findings, "fail") == set()
    assert {"M5", "H14", "H16"} <= clauses(findings, "pass")


def test_makes_at_most_40_requests_on_a_path_even_if_the_document_always_changes() -> None:
    numbers = count()
    with a_deployment(lambda _: resources(*moved_on(next(numbers)))) as deployment:
        found(deployment.base, Wishes(timeout_s=20, wait_s=0.5))
    assert max(deployment.counts.values()) <= MOST_PER_PATH == 40
    assert set(deployment.counts) == {
        *(LIVE, HISTORY, f"{LIVE}/", f"{LIVE}/no-such-thing"),
        *("/schemas/liveness.json", "/schemas/history.json", "/openapi.json"),
    }


def a_cdn(asked: Asked, sent: Sent) -> None:
    """It answers what it likes itself, and compresses for those who ask for it."""
    own = asked.method not in ("GET", "HEAD") or "origin" in asked.headers
    if asked.method in ("POST", "PATCH", "PROPFIND", "OPTIONS"):
        sent.become(403, b"<!doctype html>", "text/html")
    elif "range" in asked.headers and sent.http_code == 200:
        sent.http_code = 206
        sent.rewrite(sent.body[:10])
    elif "gzip" in asked.headers.get("accept-encoding", "") and sent.http_code == 200:
        sent.rewrite(gzip.compress(sent.body))
        sent["content-encoding"], sent["etag"] = "gzip", f"W/{sent['etag']}"
    sent["x-cache"] = "MISS" if own else "HIT"
    sent["vary"] = "Accept-Encoding"


def test_what_a_cache_may_have_answered_itself_is_no_failure() -> None:
    real = resources(*documents())
    with a_deployment(lambda _: real, a_cdn) as deployment:
        findings = found(deployment.base)
    assert [finding for finding in findings if finding.verdict == "fail"] == []
    assert clauses(findings, "could not tell") == UNTOLD | {"A2", "A4", "A7", "A8", "A15"}


def test_finds_a_cache_that_keeps_its_copies_too_long() -> None:
    def old(asked: Asked, sent: Sent) -> None:
        sent["age"] = "331" if asked.path == LIVE else "420"

    real = resources(*documents())
    with a_deployment(lambda _: real, old) as deployment:
        findings = found(deployment.base)
    (failure,) = (finding for finding in findings if finding.verdict == "fail")
    assert failure.clause == "E3"
    assert failure.what == "live report: a copy 331 s old is served, and 330 s is the most"


@pytest.mark.skipif(VARNISHD is None, reason="needs Varnish (Debian: apt install varnish)")
def test_finds_no_failure_behind_a_cache(served: str, tmp_path: Path) -> None:
    with a_cache(served, tmp_path) as base:
        first, second = found(base), found(base)
    for findings in (first, second):
        assert [finding for finding in findings if finding.verdict == "fail"] == []
        assert clauses(findings, "could not tell") <= UNTOLD_BEHIND_A_CACHE
    assert any("varnish" in finding.what for finding in second if finding.clause == "E3")


@contextmanager
def a_cache(origin: str, folder: Path) -> Iterator[str]:
    """Varnish with nothing but its defaults."""
    host, port = origin.removeprefix("http://").split(":")
    vcl = folder / "default.vcl"
    vcl.write_text(f'vcl 4.1;\nbackend default {{ .host = "{host}"; .port = "{port}"; }}\n')
    own = a_free_port()
    arguments = [
        "-F",
        "-j",
        "none",
        "-n",
        str(folder / "v"),
        "-f",
        str(vcl),
        "-a",
        f"127.0.0.1:{own}",
        "-s",
        "malloc,16m",
    ]
    with (folder / "varnish.log").open("wb") as log:
        process = subprocess.Popen([str(VARNISHD), *arguments], stdout=log, stderr=log)
        try:
            _wait_for(own, process, folder / "varnish.log")
            yield f"http://127.0.0.1:{own}"
        finally:
            process.terminate()
            process.wait(40)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    def listens() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    until(listens, "Varnish listens", 80)
