"""Hostile bytes to a real Varnish: whatever it makes of them, it and the server behind it understand each other.

Varnish itself reads some bytes more leniently than a strict reader would. What counts is what it says to the server: as
many requests as it gets answers, and nothing of a reader's making but what the server is to hear.
"""

import gzip
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.fuzz.eavesdropper import an_eavesdropper
from tests.fuzz.exchange import Came
from tests.fuzz.fuzzer import Judge, Kind, Verdict, read_kept
from tests.fuzz.http_answers import REFUSALS, Answered, CutOffError, NotHttpError, answers_to_anything
from tests.fuzz.requests import change_connection
from tests.fuzz.web import Known, a_server, learn_replies, ordinary_requests, try_side_by_side
from tests.integration.edged import an_edge

# Of each hop and moment; all else is the reply's own.
_OWN_TO_A_CACHE: Final = frozenset({b"age", b"cache-status", b"server", b"accept-ranges", b"content-encoding", b"vary"})


def judge_through_a_cache(server: Known, _sent: bytes, came: Came) -> Verdict:
    """Every answer is a refusal or one of the replies there are."""
    if not came.is_closed:
        return Verdict("open", "the connection was left open after its client had said that it was done")
    try:
        answers = answers_to_anything(came.said)
    except NotHttpError as error:
        if not (came.is_reset and isinstance(error, CutOffError)):
            return Verdict("not HTTP", str(error))
        answers = error.whole
    replies = server.not_found.union(server.replies.values())
    there_are = {(reply.http_code, reply.body) for reply in replies}
    for answer in answers:
        if answer.http_code not in REFUSALS and (answer.http_code, _plain(answer)) not in there_are:
            return Verdict("other", f"an answer of no ordinary request: {answer.http_code} {answer.body[:80]!r}")
    return Verdict(" ".join(str(answer.http_code) for answer in answers))


def _plain(answer: Answered) -> bytes:
    return (
        gzip.decompress(answer.body)
        if (b"content-encoding", b"gzip") in answer.headers and answer.body
        else answer.body
    )


@contextmanager
def _judging() -> Iterator[Judge]:
    folder = Path(tempfile.mkdtemp(prefix="lookout-edge-"))
    try:
        with (
            a_server() as server,
            an_eavesdropper((server.host, server.port)) as origin,
            an_edge(folder, origin.port) as edge,
        ):
            tries = try_side_by_side(learn_replies(("127.0.0.1", edge.port), _OWN_TO_A_CACHE), judge_through_a_cache)
            yield Judge(tries, lambda: sorted({talk.problem() for talk in origin.talks} - {""}))
    finally:
        shutil.rmtree(folder)


def _seeds() -> list[bytes]:
    return [*ordinary_requests(), *read_kept("http").values()]


EDGE: Final = Kind("the same through Varnish", _seeds, change_connection, _judging)
