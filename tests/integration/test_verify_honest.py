"""``lookout verify`` raises no false alarm: whatever is honestly published, and whatever stands in front of it."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

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
from tests.integration.broken_documents import later, top
from tests.integration.broken_replies import behind
from tests.integration.planted import Break, Edit, Json, a_deployment, a_fresh_ledger, resources
from tests.integration.served import a_free_port, a_server, publish
from tests.integration.visits import INCONCLUSIVE, clauses, command, found, visited
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
    "a test network alone": lambda: watched((11155111,), 90, healthy),
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
    "a history of a new version": (top("history", schemaVersion=2), None, {"H1", "H2", "H3", "H4", "H5", "H10"}),
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


class Front(NamedTuple):
    """A program between callers and a server: its configuration, how it is started, and what it keeps from view."""

    program: str
    configuration: str
    arguments: tuple[str, ...]
    hides: frozenset[str]


_NGINX: Final = """
user root;
daemon off;
pid FOLDER/pid;
error_log FOLDER/log;
events { }
http {
  access_log off;
  client_body_temp_path FOLDER/body;
  proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/fastcgi;
  uwsgi_temp_path FOLDER/uwsgi;
  scgi_temp_path FOLDER/scgi;
  MORE
  server {
    listen 127.0.0.1:PORT;
    location / { proxy_pass ORIGIN; INSIDE }
  }
}
"""
_VARNISH: Final = 'vcl 4.1;\nbackend default { .host = "127.0.0.1"; .port = "ORIGIN_PORT"; }\n'
_AS_NGINX: Final = ("-c", "FOLDER/conf")


def an_nginx(hides: set[str], more: str = "", inside: str = "") -> Front:
    return Front("nginx", _NGINX.replace("MORE", more).replace("INSIDE", inside), _AS_NGINX, frozenset(hides))


FRONTS: Final = {
    "nginx that compresses for a server that may not": an_nginx(
        {"A4", "A5"},
        "gzip on; gzip_proxied any; gzip_vary on; gzip_types application/json;",
        'proxy_set_header Accept-Encoding "";',
    ),
    "nginx with a cache": an_nginx(
        {"A2", "A4", "A5", "A15"}, "proxy_cache_path FOLDER/cache keys_zone=kept:1m;", "proxy_cache kept;"
    ),
    "Varnish": Front(
        "varnishd",
        _VARNISH,
        ("-F", "-j", "none", "-n", "FOLDER/v", "-f", "FOLDER/conf", "-a", "127.0.0.1:PORT", "-s", "malloc,16m"),
        frozenset({"A4", "A5", "A15"}),
    ),
}


@pytest.mark.parametrize("name", FRONTS)
def test_finds_no_failure_behind(name: str, served: str, tmp_path: Path) -> None:
    front = FRONTS[name]
    with started(front, served, tmp_path) as base:
        first, second = found(base), found(base)  # the second meets what a cache has kept
    for findings in (first, second):
        assert [finding for finding in findings if finding.verdict == "fail"] == []
        assert clauses(findings, "could not tell") <= INCONCLUSIVE | front.hides


@contextmanager
def started(front: Front, origin: str, folder: Path) -> Iterator[str]:
    program = shutil.which(front.program) or shutil.which(f"/usr/sbin/{front.program}")
    if program is None:
        pytest.skip(f"needs {front.program}")
    own, host = a_free_port(), origin.removeprefix("http://")
    words = {"FOLDER": str(folder), "ORIGIN_PORT": host.split(":")[1], "ORIGIN": origin, "HOST": host, "PORT": str(own)}

    def filled(text: str) -> str:
        for word, meant in words.items():
            text = text.replace(word, meant)
        return text

    folder.chmod(0o755)  # its worker is another user
    (folder / "conf").write_text(filled(front.configuration))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *map(filled, front.arguments)], stdout=log, stderr=log)
        try:
            _wait_for(own, process, folder / "log")
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

    until(listens, "it listens", 80)
