"""``lookout verify`` raises no false alarm: whatever is honestly published, and whatever stands in front of it."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Blocks, Check, Found, Indexes, Members, Nothing, Observation, Peers
from lookout.core.services import all_checks
from lookout.documents.reports import history_document, live_document
from lookout.replay.replay import Replay
from lookout.state.log import HeadRead, Started
from lookout.verify.clauses import find_doubts, verify_visit
from tests.builders import MINUTE, SECOND, a_plan
from tests.commands import a_command
from tests.integration.broken_documents import later, top
from tests.integration.broken_replies import behind
from tests.integration.edged import Edge, forget_everything, needs_varnish
from tests.integration.planted import Break, Edit, Json, a_deployment, a_fresh_ledger, resources
from tests.integration.served import a_server, publish, write_config
from tests.integration.visits import NOT_SEEN, clauses, command, found, visited
from tests.wait import until

CHAINS: Final = (1, 42161, 137, 56, 11155111)
HEALTHY: Final[dict[str, Found]] = {
    "messaging": Peers(5),
    "ppoi": Indexes(41, 41),
    "broadcasters": Members(5, 5),
    "indexer": Blocks(1_000),
    "hosted-indexer": Blocks(1_000),
}


def now() -> int:
    return time.time_ns() // 1_000_000


def watched(chains: tuple[int, ...], minutes: int, find: Callable[[Check], Found] | None) -> Ledger:
    """A monitor that has run for so long, with what each check finds; None: nothing was probed yet."""
    checks = [check for check in all_checks(chains) if check != Check("hosted-indexer", 11155111)]
    replay = Replay(a_plan(*checks, chains=chains))
    end_at = now()
    replay.feed(Started(end_at - minutes * MINUTE - 3 * SECOND))
    for at in range(end_at - minutes * MINUTE - 2 * SECOND, end_at, MINUTE // 2):
        if find is not None:
            for chain_id in chains:
                replay.feed(HeadRead(at, chain_id, Reading(at, 1_002, at)))
            for check in checks:
                replay.feed(Observation(check, at, find(check)))
    replay.finish(end_at)
    return replay.ledger


def healthy(check: Check) -> Found:
    return HEALTHY[check.service]


HONEST: Final[dict[str, Callable[[], Ledger]]] = {
    "21 rows, for two hours": lambda: watched(CHAINS, 120, healthy),
    "a monitor that has just started": lambda: watched(CHAINS, 0, None),
    "rows all unknown": lambda: watched(CHAINS, 90, lambda _: Nothing()),
    "rows in every status": lambda: a_fresh_ledger(now()),
}


@pytest.mark.parametrize("name", HONEST)
def test_what_is_honestly_published_has_no_finding_and_no_doubt(name: str) -> None:
    ledger = HONEST[name]()
    real = resources(live_document(ledger.report()).body, history_document(ledger.view()).body)
    with a_deployment(lambda _: real) as deployment:
        seen = visited(deployment.base)
    findings = verify_visit(seen)
    assert [finding for finding in findings if finding.verdict == "fail"] == []
    assert find_doubts(seen, findings) == []


def minutes_ago(live: Json, history: Json) -> None:
    """All of it ten minutes ago."""
    for holder, keys in ((live, ("generatedAt",)), *((each, INSTANTS) for each in live["checks"])):
        holder.update({key: later(holder[key], -600) for key in keys if holder[key] is not None})
    history["generatedAt"] = history["to"].replace("Z", ".000Z")


def tuned(live: Json, _history: Json) -> None:
    for each in live["checks"]:
        if each["expiresAt"] is not None:
            each["expiresAt"] = later(each["expiresAt"], 60)


INSTANTS: Final = ("observedAt", "lastSuccessAt", "expiresAt")
NOT_SHOWN: Final[dict[str, tuple[Edit | None, Break | None, set[str]]]] = {
    "a report ten minutes old": (minutes_ago, None, {"M5"}),
    "a history of a new version": (top("history", schemaVersion=2), None, {"H1", "H2", "H3", "H4", "H5"}),
    "another lifetime": (tuned, None, {"R7"}),
    "a stopped monitor behind a cache": (minutes_ago, behind("1.1 cache", lambda _asked, _sent: None), {"M5"}),
}


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_what_a_healthy_deployment_shows_and_this_one_does_not_is_a_doubt(name: str) -> None:
    edit, breaks, doubted = NOT_SHOWN[name]
    real = resources(*documents_of(a_fresh_ledger(now()), edit))
    with a_deployment(lambda _: real, breaks) as deployment:
        seen = visited(deployment.base, sleep=lambda _: None)
    findings = verify_visit(seen)
    assert clauses(findings, "fail") == set()
    assert {finding.clause for finding in find_doubts(seen, findings)} == doubted


def documents_of(ledger: Ledger, edit: Edit | None) -> tuple[bytes, bytes]:
    live, history = json.loads(live_document(ledger.report()).body), json.loads(history_document(ledger.view()).body)
    if edit is not None:
        edit(live, history)
    return json.dumps(live).encode(), json.dumps(history).encode()


def test_strict_is_content_with_a_healthy_server_and_not_with_a_stopped_monitor(tmp_path: Path) -> None:
    publish(tmp_path, a_fresh_ledger(now()))
    with a_server(tmp_path) as server:
        healthy_, strict = command(server.base, "--json"), command(server.base, "--json", "--strict")
        publish(tmp_path, a_fresh_ledger(now() - 10 * MINUTE))
        until(lambda: "M5" in json.loads(command(server.base, "--json").stdout)["doubts"], "it serves the old one", 60)
        stopped, refused = command(server.base), command(server.base, "--strict")
    assert (healthy_.exit_code, strict.exit_code, stopped.exit_code, refused.exit_code) == (0, 0, 0, 1)
    assert json.loads(strict.stdout)["doubts"] == []
    assert "A healthy deployment shows these, and this one did not: M5" in refused.stdout


@needs_varnish
def test_finds_no_failure_behind_the_edge(shared_edge: tuple[Edge, Path, int]) -> None:
    edge, folder, port = shared_edge
    forget_everything(edge, folder)
    publish(folder, a_fresh_ledger(now()))
    with a_command(folder, "serve", "-c", write_config(folder, port)):
        until(lambda: edge.ask().http_code == 200, "the report is served")
        first, second = (found(f"http://127.0.0.1:{edge.port}") for _ in range(2))  # from the cache, the second time
    for findings in (first, second):
        assert [finding for finding in findings if finding.verdict == "fail"] == []
        assert clauses(findings, "not seen") <= NOT_SEEN
        assert clauses(findings, "could not tell") <= {"A4", "A5", "A15"}
