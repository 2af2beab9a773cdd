"""``lookout verify``: nothing found in the real server, everything found in broken ones."""

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from lookout.base.instants import format_instant, parse_instant, parse_second
from lookout.documents.document import compress, etag
from lookout.server.request import prefers_gzip
from lookout.server.responder import respond
from lookout.verify.clauses import find_doubts, verify_visit
from lookout.verify.documents import unpack_gzip
from lookout.verify.visit import MOST_PER_PATH, VisitOptions
from tests.integration.broken_documents import BROKEN_DOCUMENTS, add_own_row, later, row, top
from tests.integration.broken_replies import BROKEN_GZIP, BROKEN_REPLIES, dated, plain
from tests.integration.planted import Asked, Break, Edit, Json, Sent, a_deployment, documents, ledger, resources
from tests.integration.served import HISTORY, LIVE, a_server, publish
from tests.integration.visits import INCONCLUSIVE, clauses, found, inspect, visited

INSTANTS: Final = ("observedAt", "lastSuccessAt", "expiresAt")


def test_finds_no_failure_in_the_real_server_and_says_what_it_could_not_tell(served: str) -> None:
    findings = found(served)
    assert [finding for finding in findings if finding.verdict == "fail"] == []
    assert clauses(findings, "could not tell") == INCONCLUSIVE
    assert len({finding.clause for finding in findings}) == len(findings) == 94


def test_tries_the_rate_limit_of_the_real_server_when_told_to(tmp_path: Path) -> None:
    publish(tmp_path, ledger())
    with a_server(tmp_path, rate_limit_per_minute=120) as server:
        findings = found(server.base, VisitOptions(timeout_s=20, rate_limit=True))
        again = found(server.base)
    (limit,) = (finding for finding in findings if finding.clause == "E2")
    assert limit.verdict == "pass"
    assert limit.what.startswith("429 after 121 requests")
    assert clauses(findings, "fail") == clauses(again, "fail") == set()
    assert {"A1", "A6", "R1", "E2"} <= clauses(again, "could not tell"), "the caller is refused now"


def test_finds_that_there_is_no_rate_limit(served: str) -> None:
    findings = found(served, VisitOptions(timeout_s=20, rate_limit=True))
    assert clauses(findings, "fail") == {"E2"}


@pytest.mark.parametrize("name", BROKEN_REPLIES)
def test_finds_a_broken_reply_and_nothing_else(name: str) -> None:
    breaks, broken = BROKEN_REPLIES[name]
    findings = inspect(resources(*documents()), breaks)
    failures = [finding for finding in findings if finding.verdict == "fail"]
    assert {finding.clause for finding in failures} == set(broken.split()), failures


@pytest.mark.parametrize("name", BROKEN_DOCUMENTS)
def test_finds_a_broken_document_and_nothing_else(name: str) -> None:
    edit, broken = BROKEN_DOCUMENTS[name]
    findings = inspect(resources(*documents(edit)))
    failures = [finding for finding in findings if finding.verdict == "fail"]
    assert {finding.clause for finding in failures} == set(broken.split()), failures


@pytest.mark.clause("A15")
@pytest.mark.parametrize("name", BROKEN_GZIP)
def test_finds_gzip_that_is_not_the_document(name: str) -> None:
    assert clauses(inspect(resources(*documents(), pack=BROKEN_GZIP[name])), "fail") == {"A15"}


def new_things(live: Json, history: Json) -> None:
    live["motd"] = history["motd"] = "hello"
    row(live, "indexer", 1).update(status="paused", reason="on-holiday")
    row(live, "indexer", 137)["metrics"]["speed"] = 1.5
    add_own_row(live, history, "oracle", None)
    add_own_row(live, history, "relay", 5)
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
    findings = inspect(resources(*documents(edit)))
    assert clauses(findings, "fail") == set()
    assert clauses(findings, "could not tell") >= doubted


def moved_on(number: int) -> tuple[bytes, bytes]:
    """Both documents, published ``number`` milliseconds later."""

    def edit(live: Json, history: Json) -> None:
        for document in (live, history):
            document["generatedAt"] = f"{document['generatedAt'][:20]}{number % 1000:03}Z"

    return documents(edit)


def a_tag(number: int) -> str:
    return f'"{number:x<16}"'


@pytest.mark.clause("A4")
@pytest.mark.parametrize(
    "tag",
    [
        pytest.param(lambda _: a_tag(1), id="one for everything"),
        pytest.param(lambda body: a_tag(body.startswith(b"{")), id="one for each coding of both documents"),
        pytest.param(lambda body: etag(unpack_gzip(body, 10**7) or body), id="one for all codings of a document"),
    ],
)
def test_finds_bodies_that_share_an_etag(tag: Callable[[bytes], str]) -> None:
    assert clauses(inspect(resources(*documents(), tag=tag)), "fail") == {"A4"}


def an_old_tag(body: bytes) -> str:
    """Of a plain document, it is that of its first publication."""
    return etag(body) if unpack_gzip(body, 10**7) else a_tag(b'"checks"' in body)


def test_finds_an_etag_that_stays_while_the_body_changes() -> None:
    both = [resources(*moved_on(number), tag=an_old_tag) for number in range(2)]
    with a_deployment(lambda number: both[number >= 10]) as deployment:
        assert clauses(found(deployment.base), "fail") == {"A4"}


@pytest.mark.clause("R1", "H1")
@pytest.mark.parametrize(
    ("key", "broken"),
    [(b'"generatedAt":', {"R1", "H1"}), (b'"observedAt":', {"R1"}), (b'"24h":', {"H1"})],
    ids=["in both documents", "in each live row", "in each row of the history"],
)
def test_finds_a_key_that_stands_twice(key: bytes, broken: set[str]) -> None:
    live, history = (body.replace(key, key + b"null," + key) for body in documents())
    assert clauses(inspect(resources(live, history)), "fail") == broken


def ahead(live: Json, _history: Json) -> None:
    live["generatedAt"] = later(live["generatedAt"], 400)


@pytest.mark.clause("M5")
@pytest.mark.parametrize(
    ("breaks", "verdict"),
    [(dated, "fail"), (None, "could not tell")],
    ids=["by two clocks", "by this machine's clock alone"],
)
def test_a_report_of_the_future(breaks: Break | None, verdict: str) -> None:
    real = resources(*documents(ahead))
    with a_deployment(lambda _: real, breaks) as deployment:
        seen = visited(deployment.base)
    findings = verify_visit(seen)
    assert clauses(findings, "fail") == ({"M5"} if verdict == "fail" else set())
    assert {finding.verdict for finding in findings if finding.clause == "M5"} == {verdict}
    assert "M5" in {finding.clause for finding in find_doubts(seen, findings)} or verdict == "fail"


def at_moment(number: int, *, live_rows: int | None = None, history_rows: int | None = None) -> tuple[bytes, bytes]:
    """Both documents with so many of their rows, the history made a little before the live report."""

    def edit(live: Json, history: Json) -> None:
        made_at = parse_second(history["to"]) + 1000 * (1 + number)
        history["generatedAt"] = format_instant(made_at)
        earlier_s = (parse_instant(live["generatedAt"]) - made_at) // 1000
        live["generatedAt"] = format_instant(made_at + 500)
        for check in live["checks"]:
            check.update({key: later(check[key], -earlier_s - 1) for key in INSTANTS if check[key] is not None})
        live["checks"], history["rows"] = live["checks"][:live_rows], history["rows"][:history_rows]

    return documents(edit)


@pytest.mark.clause("H2")
@pytest.mark.parametrize(
    ("first", "then", "verdict"),
    [
        pytest.param({}, {}, "pass", id="the same rows"),
        pytest.param({"history_rows": -1}, {"history_rows": -1}, "fail", id="one is missing from the history"),
        pytest.param({"live_rows": -1}, {"live_rows": -1}, "fail", id="one is missing from the live report"),
        pytest.param({"history_rows": -1}, {}, "pass", id="a new one is in the next history"),
        pytest.param({"history_rows": -1}, None, "could not tell", id="there is no next history"),
    ],
)
def test_the_next_history_decides_whether_both_documents_have_the_same_rows(
    first: dict[str, int], then: dict[str, int] | None, verdict: str
) -> None:
    slept: list[float] = []
    before, after = (resources(*at_moment(number, **rows)) for number, rows in enumerate((first, then or {})))
    with a_deployment(lambda _: after if then is not None and slept else before) as deployment:
        options = VisitOptions(timeout_s=20, within_s=60, wait_s=3)
        findings = verify_visit(visited(deployment.base, options, sleep=slept.append))
    assert {finding.verdict for finding in findings if finding.clause == "H2"} == {verdict}
    assert clauses(findings, "fail") <= {"H2"}


def test_finds_an_etag_that_changes_while_the_body_stays() -> None:
    before, after = (resources(*documents(), tag=tag) for tag in (etag, lambda body: etag(body + b" ")))
    with a_deployment(lambda number: before if number < 10 else after) as deployment:
        assert clauses(found(deployment.base), "fail") == {"A4"}


def test_a_document_that_changes_meanwhile_is_no_failure() -> None:
    both = [resources(*moved_on(number)) for number in range(2)]
    with a_deployment(lambda number: both[number // 7 % 2]) as deployment:
        findings = found(deployment.base)
    assert clauses(findings, "fail") == set()
    assert clauses(findings, "could not tell") == INCONCLUSIVE - {"H16"}


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
    with a_deployment(lambda number: both[number >= 45]) as deployment:
        assert clauses(found(deployment.base), "fail") == {"H16"}


def test_watches_both_documents_move() -> None:
    each = [resources(*moved_on(number)) for number in range(120)]
    began = time.monotonic()
    with a_deployment(lambda _: each[min(119, int(time.monotonic() - began))]) as deployment:
        findings = found(deployment.base, VisitOptions(timeout_s=20, wait_s=2.2))
        assert max(deployment.counts.values()) <= MOST_PER_PATH
    assert clauses(findings, "fail") == set()
    assert {"M5", "H14", "H16"} <= clauses(findings, "pass")


def test_makes_at_most_40_requests_on_a_path_even_if_the_document_always_changes() -> None:
    numbers = count()
    with a_deployment(lambda _: resources(*moved_on(next(numbers)))) as deployment:
        found(deployment.base, VisitOptions(timeout_s=20, wait_s=0.5))
    assert max(deployment.counts.values()) <= MOST_PER_PATH == 40
    assert set(deployment.counts) == {
        *(LIVE, HISTORY, f"{LIVE}/", f"{LIVE}/no-such-thing"),
        *("/schemas/liveness.json", "/schemas/history.json", "/openapi.json"),
    }


def compressed(asked: Asked, sent: Sent) -> None:
    """On the way, and so without a length."""
    if sent.http_code == 200 and asked.headers.get("accept-encoding") in ("gzip", "gzip, deflate, br, zstd"):
        sent["content-encoding"], sent["etag"] = "gzip", f"W/{sent['etag']}"
        del sent["content-length"]
        sent.body = b"" if asked.method == "HEAD" else compress(sent.body)


def a_cdn(asked: Asked, sent: Sent) -> None:
    """It answers what it likes itself, takes Accept-Encoding from the origin, and compresses by itself."""
    plain(asked, sent)
    own = asked.method not in ("GET", "HEAD") or "origin" in asked.headers
    if asked.method in ("POST", "PATCH", "PROPFIND", "OPTIONS"):
        sent.become(403, b"<!doctype html>", "text/html")
    elif "range" in asked.headers and sent.http_code == 200:
        sent.http_code = 206
        sent.rewrite(sent.body[:10])
    else:
        compressed(asked, sent)
    sent["x-cache"] = "MISS" if own else "HIT"


def an_nginx_cache(asked: Asked, sent: Sent) -> None:
    """proxy_cache as it behaves: it obeys Range, knows the ETag of one form, and says no more than its name."""
    accept = asked.headers.get("accept-encoding", "")
    if asked.path in (LIVE, HISTORY) and asked.method in ("GET", "HEAD"):
        kept = respond(resources(*documents()), asked.method, asked.path, None, prefers_gzip=prefers_gzip(accept))
        tag = dict(kept.headers)["etag"]
        if (
            sent.http_code == 304
            and tag not in asked.headers["if-none-match"]
            and asked.headers["if-none-match"] != "*"
        ):
            sent.http_code, sent.headers = 200, list(kept.headers)
            sent.body = b"" if asked.method == "HEAD" else kept.body
        if "range" in asked.headers:
            sent.http_code = 206
            sent.rewrite(sent.body[:10])
    sent["server"] = "nginx"


def a_compressing_proxy(asked: Asked, sent: Sent) -> None:
    """It compresses what the origin, which is not asked for gzip, gives plain, and says nothing of itself."""
    plain(asked, sent)
    compressed(asked, sent)


@pytest.mark.parametrize(
    ("on_the_way", "doubted"),
    [(a_cdn, {"A2", "A4", "A7", "A8", "A15"}), (an_nginx_cache, {"A5", "A15"}), (a_compressing_proxy, {"A4"})],
    ids=["a CDN", "nginx with a cache", "a proxy that compresses and weakens ETags"],
)
def test_what_may_be_done_on_the_way_is_no_failure(on_the_way: Break, doubted: set[str]) -> None:
    findings = inspect(resources(*documents()), on_the_way)
    assert [finding for finding in findings if finding.verdict == "fail"] == []
    assert clauses(findings, "could not tell") == INCONCLUSIVE | doubted


def test_finds_a_cache_that_keeps_its_copies_too_long() -> None:
    def old(asked: Asked, sent: Sent) -> None:
        sent["age"] = "331" if asked.path == LIVE else "420"

    findings = inspect(resources(*documents()), old)
    (failure,) = (finding for finding in findings if finding.verdict == "fail")
    assert failure.clause == "E3"
    assert failure.what == "live report: a copy 331 s old is served, and 330 s is the most"
