"""Why a row is not current: the same cause in the log, the metrics, alerts and on the board of sources (M16)."""

import errno
import json
import re
import socket
import ssl
from http import HTTPStatus
from pathlib import Path
from typing import Final

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from lookout.base.admin_port import AdminRoutes, Readiness, answer_request, json_reply
from lookout.cli.probe import list_next_steps
from lookout.core.causes import ALL_CAUSES, code_of, describe_cause, explain
from lookout.core.heads import Reading
from lookout.core.model import (
    Blocks,
    Check,
    Failed,
    Found,
    Indexes,
    Members,
    Metrics,
    MissingList,
    Nothing,
    Peers,
    Responding,
    Row,
)
from lookout.features.outcome import EntryKey
from lookout.monitor.board import Board
from lookout_reader.urllib_fetch import explain_failure
from tests.builders import DAY, HOUR, INDEXER, MINUTE, NOON, PPOI, SECOND, a_plan
from tests.unit.running_monitor import Asked, Read, lived

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "operations.md"
OWN_NODE: Final = EntryKey("endpoint", "own node of Ethereum", 1)
SECOND_NODE: Final = EntryKey("endpoint", "rpc 2 of Ethereum", 1)
UNREACHABLE: Final = Row(INDEXER, "unknown", "unreachable", NOON)


def a_row(status: str, reason: str, **metrics: int) -> Row:
    return Row(INDEXER, status, reason, NOON, metrics=Metrics(**metrics))  # type: ignore[arg-type]


@pytest.mark.clause("M16")
@pytest.mark.parametrize(
    ("found", "row", "cause"),
    [
        pytest.param(Failed("http_status: 503"), UNREACHABLE, "http_status: 503", id="a failure has its own"),
        pytest.param(Peers(0), UNREACHABLE, "no_peers", id="a node without peers"),
        pytest.param(Members(0, 5), UNREACHABLE, "none_responding: 0 of 5", id="broadcasters that are all silent"),
        pytest.param(
            Members(3, 5), a_row("degraded", "partial-coverage"), "some_silent: 3 of 5", id="some of them are silent"
        ),
        pytest.param(Members(0, 0), a_row("unknown", "no-observation"), "nothing", id="nobody to monitor"),
        pytest.param(Nothing(), a_row("unknown", "no-observation"), "nothing", id="nothing for this chain"),
        pytest.param(
            Nothing(),
            replace(a_row("unknown", "no-observation"), last_success_at=NOON - HOUR),
            "nothing_left",
            id="nothing any more for this chain",
        ),
        pytest.param(
            Nothing("still_reading"),
            a_row("unknown", "no-observation"),
            "still_reading",
            id="broadcasters that may have announced themselves in what was not read yet",
        ),
        pytest.param(MissingList(), a_row("unknown", "incompatible-reference"), "missing_list", id="a missing list"),
        pytest.param(
            Blocks(7), a_row("unknown", "incompatible-reference", position=7), "no_head", id="nothing to compare with"
        ),
        pytest.param(
            Blocks(1_794_998_450),
            a_row("unknown", "incompatible-reference", position=1_794_998_450),
            "far_above: head 458",
            id="a position of another chain",
        ),
        pytest.param(
            Blocks(7),
            a_row("degraded", "incomplete", position=7, head=7, missing=2, extra=1),
            "incomplete: 2 missing, 1 extra",
            id="a list that lacks something, and has something else",
        ),
        pytest.param(
            Blocks(7),
            a_row("degraded", "inconsistent", position=7, head=7, extra=1),
            "inconsistent: 1 extra",
            id="a list that has too much",
        ),
        pytest.param(
            Blocks(7),
            a_row("catching-up", "behind", position=7, head=407),
            "behind: 400 blocks below the head (7 of 407)",
            id="a position that trails",
        ),
        pytest.param(Blocks(7), a_row("catching-up", "behind"), "behind", id="a position without its numbers"),
        pytest.param(
            Indexes(7, 9),
            a_row("degraded", "inconsistent", position=7, head=9, gap=4),
            "node_gap: 4 apart",
            id="a node that lacks entries of a list",
        ),
        pytest.param(
            Indexes(7, 9),
            a_row("degraded", "behind", position=7, head=9),
            "behind: 2 indexes below its own head (7 of 9)",
            id="an index",
        ),
        pytest.param(Responding(), a_row("current", "responding"), None, id="what is current needs no cause"),
    ],
)
def test_whatever_is_not_current_has_a_cause(found: Found, row: Row, cause: str | None) -> None:
    head = Reading(NOON, 458, NOON) if cause == "far_above: head 458" else None
    assert explain(found, row, head) == cause
    assert cause is None or code_of(cause) in ALL_CAUSES


@pytest.mark.parametrize(
    ("still_since_at", "since"),
    [(NOON - 89 * MINUTE, "10:31 UTC"), (NOON - DAY, "2026-11-04 12:00 UTC")],
)
def test_a_position_that_stands_still_has_a_cause_of_its_own(still_since_at: int, since: str) -> None:
    row = replace(a_row("degraded", "behind", position=7, head=407), still_since_at=still_since_at)
    cause = explain(Blocks(7), row, None)
    assert describe_cause(cause or "") == f"behind, and not moving since {since}; 400 blocks below the head (7 of 407)"


def causes_of_an_indexer(*said: Blocks | Indexes, check: Check = INDEXER) -> list[str]:
    """The causes of its row, or of another one's, after so many answers."""
    board = Board()
    lived(33 * len(said) - 13, a_plan(check), [Asked(check, *said)], [Read(1, 1000)], board=board)
    return [str(row.cause) for entry in board.list_entries() if entry.rows for row in entry.rows]


@pytest.mark.clause("M16")
def test_a_position_stands_still_once_answers_a_minute_apart_have_the_same_one() -> None:
    behind = "95 blocks below the head (900 of 995)"
    assert causes_of_an_indexer(Blocks(900), Blocks(900)) == [f"behind: {behind}"]
    assert causes_of_an_indexer(*[Blocks(900)] * 3) == [f"not_moving: 12:00 UTC; {behind}"]
    assert causes_of_an_indexer(*[Blocks(100)] * 3, Blocks(900)) == [f"behind: {behind}"]


@pytest.mark.clause("M16")
def test_a_node_that_had_nothing_to_take_in_did_not_stand_still_meanwhile() -> None:
    behind = "1 indexes below its own head (9 of 10)"
    quiet, trails = [Indexes(9, 9)] * 4, [Indexes(9, 10)] * 3
    assert causes_of_an_indexer(*quiet, *trails, check=PPOI) == [f"not_moving: 12:02 UTC; {behind}"]


def a_certificate_error(verify_code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError()
    error.verify_code = verify_code
    return error


def a_tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError()
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ConnectionRefusedError(), "refused"),
        (ConnectionResetError(), "reset"),
        (socket.gaierror(), "dns"),
        (OSError(errno.EHOSTUNREACH, ""), "network"),
        (a_certificate_error(10), "tls: expired"),
        (a_certificate_error(1), "tls: certificate not accepted"),
        (a_tls_error("WRONG_VERSION_NUMBER"), "tls: not TLS"),
        (a_tls_error("NO_SHARED_CIPHER"), "tls: handshake failed"),
    ],
)
def test_readers_say_why_there_is_no_answer_in_the_words_of_causes(error: OSError, cause: str) -> None:
    assert explain_failure(error) == describe_cause(cause)


def test_a_chain_whose_endpoints_all_fail_has_another_cause_than_one_whose_endpoints_differ() -> None:
    row = a_row("unknown", "incompatible-reference", position=7)
    assert explain(Blocks(7), row, None, endpoints_answer=False) == "no_endpoint"


def test_the_page_has_every_cause_and_no_other() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Causes\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert sorted(code for row in rows for code in re.findall(r"`(\w+)`", row)) == sorted(ALL_CAUSES)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        pytest.param("http_status: 503", "no usable answer: HTTP 503", id="the detail is where it belongs"),
        pytest.param("tls: expired", "not reached: no secure connection (expired)", id="or after the words"),
        pytest.param("refused", "not reached: nothing listens at its address", id="without a detail"),
        pytest.param("http_status", "no usable answer: HTTP ?", id="a detail that a plug-in left out"),
        pytest.param("of_later: 7", "of_later: 7", id="a cause that another version stored"),
    ],
)
def test_a_cause_has_the_same_words_everywhere(cause: str, words: str) -> None:
    assert describe_cause(cause) == words


@pytest.mark.clause("M16")
def test_the_board_has_the_last_outcome_of_everything_that_is_asked() -> None:
    board = Board()
    board.note_source("indexer 1", NOON, 12, [UNREACHABLE], {INDEXER: "refused"})
    board.note_source("ppoi", NOON, 12, [UNREACHABLE, a_row("current", "synced")], {INDEXER: "nothing"})
    agreed = Reading(NOON, 100, NOON)
    board.note_reading(OWN_NODE, NOON, 30, Reading(NOON, 90, NOON - 12 * SECOND), agreed)
    board.note_reading(SECOND_NODE, NOON, 10_000, "timeout: connect", agreed)
    board.note_reading(SECOND_NODE, NOON + SECOND, 10_000, "wrong_chain: 5 instead of 1", agreed)
    lists = {"/sources": lambda: json_reply(HTTPStatus.OK, board.list_entries())}
    routes = AdminRoutes(CollectorRegistry(), lambda _: Readiness(True, "", None), lists)
    reply = answer_request("/sources", "", routes)
    assert (reply.http_code, reply.content_type) == (200, "application/json")
    own, second, of_indexer, of_ppoi = json.loads(reply.body)
    assert of_indexer == {
        "name": "indexer 1",
        "kind": "source",
        "at": "2026-11-05T12:00:00.000Z",
        "tookMs": 12,
        "outcome": "failed",
        "cause": "refused",
        "rows": [
            {"service": "indexer", "chainId": 1, "status": "unknown", "reason": "unreachable", "cause": "refused"}
        ],
    }
    assert (of_ppoi["outcome"], "cause" in of_ppoi) == ("answered", False)
    assert (own["outcome"], own["height"], own["lagBlocks"]) == ("answered", 90, 10)
    assert (second["at"], second["cause"]) == ("2026-11-05T12:00:01.000Z", "wrong_chain: 5 instead of 1")
    assert "standing" not in own
    board.note_standings(1, {OWN_NODE.name: "behind", SECOND_NODE.name: "wrong_chain"})
    assert [each.standing for each in board.list_entries()] == ["behind", "wrong_chain", UNSET, UNSET]
    board.begin()
    assert not board.list_entries()
    without = AdminRoutes(CollectorRegistry(), lambda _: Readiness(True, "", None))
    assert answer_request("/sources", "", without).http_code == 404


def test_probe_says_what_to_do_once_for_each_code_and_with_details_where_they_matter() -> None:
    causes = ["http_status: 404", "http_status: 503", None, "behind: 5", "behind: 9", "of_later"]
    assert list(list_next_steps(causes)) == [
        "behind: wait while its position moves; if it stands still, restart it, or ask those who run it",
        "http_status: 404: check its address, key and headers in the configuration",
        "http_status: 503: look at the service's own log, or ask those who run it",
    ]
