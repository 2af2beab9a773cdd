"""Damaged documents in a real store, under a server that has read good ones, and under one that starts on them.

Whatever stands there: what was served stays (A11, A12), the failure is counted and logged, and the next good document
is taken over. A server that never saw a good one answers 503, and lives.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from lookout.base.clock import SystemClock
from lookout.base.pieces import Pieces
from lookout.documents.document import Document, DocumentName, etag, paths
from lookout.documents.reports import history_document, live_document
from lookout.server.poller import Poller
from lookout.server.replies import Site
from lookout.server.responder import respond
from lookout.store.sqlite import SqliteReader, open_writer
from tests.fuzz.fuzzer import Judge, Kind, Verdict, catch_errors, judge_in_a_folder
from tests.integration.served import a_ledger
from tests.simulation.silence import without_logs
from tests.untyped import untyped_documents

_FIVE_MINUTES: Final = 300_000
_LIVE, _HISTORY = paths("protocol")
_ODD: Final[tuple[Any, ...]] = (
    None, 0, -1, 1, 2**63 - 1, -(2**63), 1.5, 1e300, "", "x", "\x00", '"0000000000000000"', '""', "*",
    '"a"\r\nX-Injected: yes', "\u0130" * 20, "12", "2026-11-15T12:00:00.000Z", {"blob": ""}, {"blob": "00"},
    {"blob": "ff" * 50}, {"blob": "7b7d"}, {"blob": "efbbbf7b7d"},
)  # fmt: skip
# A case is two rows as JSON, each {"body", "etag", "generated_at"}. A text is a text, {"blob": hex} are bytes, and the
# ETag "right" is that of the body.
_GOOD: Final = {"body": {"blob": "7b7d"}, "etag": "right", "generated_at": 1793880000000}


@catch_errors
def judge_case(folder: Path, case: bytes) -> Verdict:
    try:
        rows = json.loads(case)
        stored = {name: _stored(rows[name]) for name in ("live", "history") if rows.get(name) is not None}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return Verdict("no rows")
    path, good = folder / "lookout.db", _good_documents()
    for left in folder.iterdir():
        left.unlink()
    path.write_bytes(good_store())
    with closing(SqliteReader(path)) as reader, closing(SqliteReader(path)) as late:
        poller = _poller(reader)
        poller.poll()
        if "flips" in rows:
            return _judge_flips(poller, path, rows["flips"])
        _put(path, stored)
        poller.poll()
        started = _poller(late)
        started.poll()
        problem = _problem(poller, started, stored, good)
        _put(path, {name: (each.body, each.etag, each.generated_at) for name, each in good.items()})
        poller.poll()
        if not problem and (_body(poller, _LIVE), _body(poller, _HISTORY)) != (good["live"].body, good["history"].body):
            problem = "the good documents were not taken over again"
        return Verdict(f"{started.state.generated_at is None} {poller.state.store_errors} {sorted(stored)}", problem)


def _problem(
    poller: Poller,
    started: Poller,
    stored: dict[str, tuple[Any, ...]],
    good: Mapping[DocumentName, Document],
) -> str:
    is_reported = poller.state.store_errors > 0 and started.state.store_errors > 0
    for name, path in zip(good, (_LIVE, _HISTORY), strict=True):
        damaged = name in stored and not is_good(*stored[name])
        served, late = respond(poller.resources, "GET", path, None), respond(started.resources, "GET", path, None)
        if damaged and (served.http_code, served.body) != (200, good[name].body):
            return f"a damaged {name} document replaced the last good one by {served.http_code} {served.body[:60]!r}"
        if damaged and late.http_code != 503:
            return f"a server that starts on a damaged {name} document answers {late.http_code}"
        if damaged and not is_reported:
            return f"a damaged {name} document was not reported"
        if not damaged and 200 not in (served.http_code, late.http_code):
            return f"a good {name} document was kept back"
    return ""


def is_good(body: Any, tag: Any, _generated_at: Any) -> bool:
    """Whether a monitor could have written this document; the instant beside it is nobody's business but its own."""
    return type(body) is bytes and tag == etag(body)


def _stored(row: dict[str, Any]) -> tuple[Any, Any, Any]:
    body = _value(row["body"])
    tag = etag(body if type(body) is bytes else str(body).encode()) if row["etag"] == "right" else _value(row["etag"])
    return body, tag, _value(row["generated_at"])


def _value(written: Any) -> Any:
    return bytes.fromhex(written["blob"]) if isinstance(written, dict) else written


def _put(path: Path, rows: dict[str, tuple[Any, ...]]) -> None:
    """Past the monitor, and past the types of the table."""
    with untyped_documents(path) as connection:
        connection.execute("DELETE FROM untyped")
        connection.executemany(
            "INSERT INTO untyped VALUES (?, ?, ?, ?)", ((name, *values) for name, values in rows.items())
        )


@cache
def _good_documents() -> dict[DocumentName, Document]:
    ledger = a_ledger()
    return {"live": live_document(ledger.report()), "history": history_document(ledger.view())}


@cache
def good_store() -> bytes:
    """The file of a store, without its write-ahead log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lookout.db"
        with closing(open_writer(path)) as writer:
            writer.write(_good_documents(), Pieces({}))
        return path.read_bytes()


def _judge_flips(poller: Poller, path: Path, flips: list[int]) -> Verdict:
    """Bits of the file itself, by number: a server serves what it had, and one that starts now has that or none."""
    damaged = bytearray(good_store())
    for bit in flips:
        damaged[bit // 8 % len(damaged)] ^= 1 << bit % 8
    path.unlink()
    path.write_bytes(damaged)
    poller.poll()
    with closing(SqliteReader(path)) as reader:
        started = _poller(reader)
        started.poll()
        found = [_body(server, each) for server in (poller, started) for each in (_LIVE, _HISTORY)]
        codes = [respond(started.resources, "GET", each, None).http_code for each in (_LIVE, _HISTORY)]
    good = _good_documents()
    if found[:2] != [good["live"].body, good["history"].body]:
        return Verdict("lost", "what was served was lost or changed")
    for code, body, name in zip(codes, found[2:], good, strict=True):
        if code == 200 and body != good[name].body:
            return Verdict("changed", f"a damaged {name} document is served")
    return Verdict(f"flips {codes}")


def _poller(reader: SqliteReader) -> Poller:
    return Poller(reader, SystemClock(), _FIVE_MINUTES, Site(paths("protocol")))


def _body(poller: Poller, path: str) -> bytes:
    return respond(poller.resources, "GET", path, None).body


def _seeds() -> list[bytes]:
    both: dict[str, Any] = {"live": _GOOD, "history": _GOOD}
    alone = [{**both, name: {**_GOOD, key: odd}} for name in both for key in _GOOD for odd in _ODD]
    return [json.dumps(case).encode() for case in (both, {"live": _GOOD}, {"history": _GOOD}, {}, *alone)]


def _change(chance: Random, case: bytes, other: bytes) -> bytes:
    """Some odd values in either row, or a row of another case."""
    try:
        rows, others = json.loads(case), json.loads(other)
    except ValueError:
        return other
    if chance.random() < 0.5:
        bits = 8 * len(good_store())
        return json.dumps({"flips": [chance.randrange(bits) for _ in range(chance.choice((1, 2, 8, 100)))]}).encode()
    for _ in range(chance.choice((1, 1, 2, 3))):
        name = chance.choice(("live", "history"))
        if chance.random() < 0.2 or not isinstance(rows.get(name), dict):
            rows[name] = others.get(name)
        else:
            odd = chance.choice((*_ODD, chance.randint(-(2**63), 2**63 - 1), {"blob": chance.randbytes(30).hex()}))
            rows[name] = {**rows[name], chance.choice(list(_GOOD)): odd}
    return json.dumps(rows).encode()


@contextmanager
def _judging() -> Iterator[Judge]:
    with without_logs(), judge_in_a_folder(judge_case) as judge:
        yield judge


DOCUMENTS: Final = Kind("documents in a store", _seeds, _change, _judging)
