"""Those who ask all day: ordinary readers of every place, one who holds it against the contract, and a flood."""

import http.client
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import Final

from lookout.base.url import parse_base_url
from lookout.verify.clauses import verify_visit
from lookout.verify.visit import VisitOptions, visit
from tests.integration.served import HISTORY, LIVE, Server
from tests.system.day.verdict import Judge
from tests.system.day.wall import Wall

_EVERY_S: Final = 0.2
_PATIENCE_S: Final = 20.0


@contextmanager
def readers(places: Mapping[str, Server], judge: Judge) -> Iterator[None]:
    """Ask every place for both documents about five times a second meanwhile."""
    ended = threading.Event()
    with ThreadPoolExecutor(len(places)) as pool:
        reading = [pool.submit(_read, name, place, judge, ended) for name, place in places.items()]
        try:
            yield
        finally:
            ended.set()
        for each in reading:
            each.result()


def _read(name: str, place: Server, judge: Judge, ended: threading.Event) -> None:
    tags: dict[str, str | None] = {LIVE: None, HISTORY: None}
    has_answered, conditional = False, False
    while not ended.wait(_EVERY_S):
        conditional = not conditional
        for path in tags:
            asked_with = tags[path] if conditional else None
            try:
                answer = place.ask("GET", path, {} if asked_with is None else {"If-None-Match": asked_with})
            except (OSError, HTTPException) as error:
                if has_answered:
                    judge.fail(f"{name}{path}: no answer: {error!r}")
                continue
            has_answered = True
            tags[path] = judge.take(name, path, asked_with, answer)


def verify_place(name: str, place: Server, wall: Wall) -> list[str]:
    """What ``lookout verify`` finds wrong with a place."""
    seen = visit(parse_base_url(place.base), VisitOptions(timeout_s=_PATIENCE_S), wall, time.sleep)
    return [f"{name}: {f.clause}: {f.what}" for f in verify_visit(seen) if f.verdict == "fail"]


def flood_place(place: Server, limit: int, callers: int, seconds: float) -> tuple[Counter[int], list[str]]:
    """Ask as fast as can be from so many addresses, each until it is refused and for the seconds after that."""
    addresses = [f"127.0.9.{number}" for number in range(1, callers + 1)]
    with ThreadPoolExecutor(callers) as pool:
        codes = dict(
            zip(addresses, pool.map(lambda each: _answers(place, each, limit, seconds), addresses), strict=True)
        )
    wrong = [
        f"the flood from {address} was answered with {dict(own)}, where {limit} may pass"
        for address, own in codes.items()
        if set(own) != {200, 429} or own[200] != limit
    ]
    return sum(codes.values(), Counter()), wrong


def _answers(place: Server, address: str, limit: int, seconds: float) -> Counter[int]:
    codes: Counter[int] = Counter()
    give_up = time.monotonic() + _PATIENCE_S + limit / 50
    connection = HTTPConnection(place.host, place.port, timeout=_PATIENCE_S, source_address=(address, 0))
    try:
        while time.monotonic() < give_up:
            try:
                connection.request("HEAD", LIVE)
                answer = connection.getresponse()
                answer.read()
            except http.client.RemoteDisconnected:  # a connection is not kept for ever
                connection.close()
                continue
            if answer.status == 429 and 429 not in codes:
                give_up = time.monotonic() + seconds
            codes[answer.status] += 1
    finally:
        connection.close()
    return codes
