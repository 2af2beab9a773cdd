"""``lookout verify``: nothing found in the real server, everything found in broken ones."""

import gzip
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from lookout.documents.document import etag
from lookout.verify.clauses import SHOWN, verify_visit
from lookout.verify.visit import VisitOptions
from tests.integration.broken_documents import BROKEN_DOCUMENTS, POOR_DOCUMENTS, add_own_row, later, row, top
from tests.integration.broken_replies import BROKEN_GZIP, BROKEN_REPLIES, POOR_REPLIES
from tests.integration.planted import Edit, Json, a_deployment, documents, ledger, resources
from tests.integration.served import HISTORY, LIVE, Server, a_server, publish
from tests.integration.visits import NOT_SEEN, clauses, found, inspect, visited
from tests.unit.server.fakes import SetClock


def test_finds_no_failure_in_the_real_server_and_says_what_it_did_not_see(served: Server) -> None:
    findings = found(served.base)
    assert [finding for finding in findings if finding.verdict in ("fail", "could not tell")] == []
    assert clauses(findings, "not seen") == NOT_SEEN
    assert len({finding.clause for finding in findings}) == len(findings) == 103


def test_tries_the_rate_limit_of_the_real_server_when_told_to(served: Server, tmp_path: Path) -> None:
    publish(tmp_path, ledger())
    with a_server(tmp_path, rate_limit_per_minute=120) as server:
        findings = found(server.base, VisitOptions(timeout_s=20, rate_limit=True))
        again = found(server.base)
    assert clauses(found(served.base, VisitOptions(timeout_s=20, rate_limit=True)), "fail") == {"E2"}, "it has no limit"
    (limit,) = (finding for finding in findings if finding.clause == "E2")
    assert limit.verdict == "pass"
    assert clauses(findings, "fail") == clauses(again, "fail") == set()
    assert {"A1", "E2"} <= clauses(again, "could not tell"), "the caller is refused now"
    assert "R1" in clauses(again, "not seen")


def test_every_clause_that_can_be_seen_is_broken_by_a_reply_or_a_document() -> None:
    broken = {
        clause for table in (BROKEN_REPLIES, BROKEN_DOCUMENTS) for _, ids in table.values() for clause in ids.split()
    }
    # What takes several documents is broken below; a new character, or a missing description, is no failure.
    assert SHOWN - broken == {"M5", "H14", "H16", "H5", "V3"}
    assert broken <= SHOWN


def test_every_clause_that_passes_is_not_seen_in_a_poorer_reply_or_document() -> None:
    unseen = {clause for table in (POOR_REPLIES, POOR_DOCUMENTS) for _, ids in table.values() for clause in ids.split()}
    # Of these a deployment that answers always shows something.
    assert SHOWN - NOT_SEEN - unseen == {"A1", "E1", "V3"}
    assert unseen <= SHOWN - NOT_SEEN


@pytest.mark.parametrize("name", [*POOR_DOCUMENTS, *POOR_REPLIES])
def test_a_clause_that_nothing_could_have_broken_is_not_seen(name: str) -> None:
    edit, of_document = POOR_DOCUMENTS.get(name, (None, ""))
    breaks, of_reply = POOR_REPLIES.get(name, (None, ""))
    findings = inspect(resources(*documents(edit)), breaks)
    assert clauses(findings, "not seen") == NOT_SEEN | {*of_document.split(), *of_reply.split()}
    is_there = name not in POOR_REPLIES
    assert clauses(findings, "fail") == ({"A1"} if not is_there else {"R1"} if name == "no row" else set())


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
        pytest.param(new_things, {"H5"}, id="new fields, statuses, services, characters and windows"),
        pytest.param(top("history", schemaVersion=2), {"H1"}, id="a new version of the history"),
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


@pytest.mark.clause("A4")
@pytest.mark.parametrize(
    "tag",
    [
        pytest.param(lambda _: f'"{1:x<16}"', id="one for everything"),
        pytest.param(
            lambda body: etag(body if body.startswith(b"{") else gzip.decompress(body)),
            id="one for all codings of a document",
        ),
    ],
)
def test_finds_bodies_that_share_an_etag(tag: Callable[[bytes], str]) -> None:
    assert clauses(inspect(resources(*documents(), tag=tag)), "fail") == {"A4"}


def test_finds_an_etag_that_changes_while_the_body_stays() -> None:
    before, after = (resources(*documents(), tag=tag) for tag in (etag, lambda body: etag(body + b" ")))
    with a_deployment(lambda number: before if number < 10 else after) as deployment:
        assert clauses(found(deployment.base), "fail") == {"A4"}


def test_a_document_that_changes_meanwhile_is_no_failure() -> None:
    both = [resources(*moved_on(number)) for number in range(2)]
    with a_deployment(lambda number: both[number // 7 % 2]) as deployment:
        findings = found(deployment.base)
    assert clauses(findings, "fail") == set()
    assert clauses(findings, "not seen") == NOT_SEEN - {"H16"}


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
    with a_deployment(lambda number: both[number >= 50]) as deployment:
        assert clauses(found(deployment.base), "fail") == {"H16"}


@pytest.mark.parametrize(("wait_s", "seen"), [(30, {"H16"}), (40, {"H16", "M5"}), (80, {"H16", "M5", "H14"})])
def test_documents_that_move_are_watched_for_as_long_as_they_may_stand_still(wait_s: int, seen: set[str]) -> None:
    """One publication in ten seconds."""

    def edit(live: Json, history: Json) -> None:
        for document in (live, history):
            document["generatedAt"] = later(document["generatedAt"], 10 * ((clock.elapsed - began_ms) // 10_000))

    def sleep(seconds: float) -> None:
        clock.elapsed += round(seconds * 1000)

    clock = SetClock()
    began_ms = clock.elapsed
    with a_deployment(lambda _: resources(*documents(edit))) as deployment:
        findings = verify_visit(visited(deployment.base, VisitOptions(timeout_s=20, wait_s=wait_s), sleep, clock))
    assert clauses(findings, "fail") == set()
    assert {"M5", "H14", "H16"} - clauses(findings, "not seen") == seen


def test_makes_at_most_40_requests_on_a_path_even_if_the_document_always_changes() -> None:
    numbers = count()
    with a_deployment(lambda _: resources(*moved_on(next(numbers)))) as deployment:
        found(deployment.base, VisitOptions(timeout_s=20, wait_s=0.5))
    assert max(deployment.counts.values()) <= 40
    assert set(deployment.counts) == {
        *(path + suffix for path in (LIVE, HISTORY) for suffix in ("", "/", "/no-such-thing")),
        *("/schemas/liveness.json", "/schemas/history.json", "/openapi.json"),
    }
