"""Clauses E, and M5, H14 and H16, which show in several answers one after the other."""

from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from lookout.verify.caches import is_hit
from lookout.verify.clauses_history import EndedBuckets, read_ended_buckets
from lookout.verify.client import HttpAnswer, NoAnswer
from lookout.verify.documents import Unreadable, decode_document, read_generated_at
from lookout.verify.findings import ClauseFinding, failed, inconclusive, passed, quote
from lookout.verify.visit import LIMIT_PER_MINUTE, EndpointVisit, Exchange, Limit, Visit

_OLDEST_S: Final = {"live report": 330, "history": 420}  # E3
# How long generatedAt may stand still, and how much longer in a shared cache (s-maxage, stale-while-revalidate).
_STILL_MS: Final = {"live report": (35_000, 60_000), "history": (75_000, 180_000)}
_WATCH_S: Final = {"live report": 40, "history": 80}
_STOPPED_S: Final = 150  # not even a row lives longer (R7)
_AHEAD_S: Final = 30  # what a reader puts up with (C2)
_MOVES: Final = {"live report": "M5", "history": "H14"}
_RETRY_AFTER_S: Final = range(1, 91)
_PUBLICATIONS_A_SECOND: Final = 2
_NODES: Final = 10  # of a cache, each of which may have a copy of its own


def verify_edge(visit: Visit, cache: str | None) -> Iterator[ClauseFinding]:
    yield from _verify_other_paths(visit.elsewhere)
    yield from _verify_rate_limit(visit)
    for endpoint in (visit.live, visit.history):
        yield from _verify_cache(endpoint, cache)
        yield from _verify_movement(endpoint, visit.at, cache)
    yield from _verify_ended_buckets(visit.history)


def _verify_other_paths(elsewhere: tuple[Exchange, ...]) -> Iterator[ClauseFinding]:
    for name, request, outcome, _ in elsewhere:
        if name not in ("other path", "slash"):
            continue
        if isinstance(outcome, NoAnswer):
            yield (failed if outcome.was_sent else inconclusive)("E1", f"{request.path}: {outcome.why}")
        elif outcome.http_code == 429:
            yield inconclusive("E1", f"{request.path} met the rate limit")
        elif outcome.http_code != 404:
            yield failed("E1", f"{request.path} gets {outcome.http_code} instead of 404")
        else:
            body = decode_document(outcome.body)
            if isinstance(body, Unreadable) or not isinstance(body.get("message"), str):
                yield failed("E1", f"{request.path}: a 404 without a message: {quote(outcome.body[:60])}")
            else:
                yield passed("E1", "another path gets 404 with a message")


def _verify_rate_limit(visit: Visit) -> Iterator[ClauseFinding]:
    met = [answer for endpoint in (visit.live, visit.history) for _, answer in endpoint.answers(429)]
    for answer in met:
        yield from _verify_429(answer)
        yield inconclusive(
            "E2", "this caller was refused before the limit was tried: somebody else asks from here, or did"
        )
    if visit.limit is None:
        yield inconclusive("E2", "not tried: it refuses the caller for a minute (--rate-limit tries it)")
    else:
        yield from _verify_limit(visit.limit)


def _verify_limit(limit: Limit) -> Iterator[ClauseFinding]:
    after = f"after {limit.made} requests in {limit.took_ms / 1000:.0f} s"
    if isinstance(limit.refused, NoAnswer):
        yield inconclusive("E2", f"{after}: {limit.refused.why}")
    elif limit.refused.http_code != 429:
        slow = limit.took_ms > 60_000
        yield (inconclusive if slow else failed)("E2", f"no 429 {after}")
    elif limit.made <= LIMIT_PER_MINUTE:
        yield from _verify_429(limit.refused)
        yield inconclusive("E2", f"429 {after}, as right only if others ask from this address too")
    else:
        yield from _verify_429(limit.refused)
        yield passed("E2", f"429 {after}")


def _verify_429(answer: HttpAnswer) -> Iterator[ClauseFinding]:
    """The page for a caller that asks too often. HEAD has none."""
    retry_after = answer.header("retry-after") or ""
    if not retry_after.isdigit() or int(retry_after) not in _RETRY_AFTER_S:
        yield failed("E2", f"a 429 with Retry-After {quote(answer.header('retry-after'))}")
    if not (answer.header("content-type") or "").startswith("text/plain"):
        yield failed("E2", f"a 429 of Content-Type {quote(answer.header('content-type'))}")
    elif answer.body and b"1015" not in answer.body:
        yield failed("E2", "a 429 whose page does not name error code 1015")
    if answer.header("access-control-allow-origin") is not None:
        yield failed("E2", "a 429 with Access-Control-Allow-Origin")


def _verify_cache(endpoint: EndpointVisit, cache: str | None) -> Iterator[ClauseFinding]:
    if cache is None:
        yield inconclusive("E3", "there is no sign of a shared cache")
        yield inconclusive("E4", "there is no sign of a shared cache")
        return
    most_s = _OLDEST_S[endpoint.noun]
    for _, answer in endpoint.answers(200, 304):
        age = answer.header("age") or ""
        if age.isdigit() and int(age) > most_s:
            yield failed("E3", f"{endpoint.noun}: a copy {age} s old is served, and {most_s} s is the most")
    yield inconclusive("E3", f"a cache ({cache}); what it does when the origin fails shows only when it does")
    query = endpoint.outcome("query")
    if isinstance(query, HttpAnswer) and query.http_code == 200 and is_hit(query):
        yield inconclusive("E4", "the cache has one copy for all query strings; its copies by Origin do not show")
    else:
        yield inconclusive("E4", "whether query strings share one copy did not show")


class _DatedAnswer(NamedTuple):
    """An answer: what for and when it was asked for, and its generatedAt."""

    name: str
    asked_at: int
    at: int


def _list_dated_answers(endpoint: EndpointVisit) -> Iterator[_DatedAnswer]:
    known: dict[bytes, int | None] = {}
    for exchange, body in endpoint.documents():
        if body not in known:
            known[body] = read_generated_at(body)
        at = known[body]
        if at is not None:
            yield _DatedAnswer(exchange.name, exchange.at, at)


def looks_stopped(visit: Visit) -> bool:
    """Whether the live report is older than any that a monitor keeps up to date, or not of this time at all."""
    first = next(_list_dated_answers(visit.live), None)
    return first is not None and not -_AHEAD_S <= (visit.at - first.at) / 1000 <= _STOPPED_S


def _verify_movement(endpoint: EndpointVisit, now: int, cache: str | None) -> Iterator[ClauseFinding]:
    """M5, H14. Only --wait says that the monitor is meant to run."""
    noun, clause = endpoint.noun, _MOVES[endpoint.noun]
    seen = list(_list_dated_answers(endpoint))
    different = {each.at for each in seen}
    took_s = (seen[-1].asked_at - seen[0].asked_at) / 1000 if seen else 0
    if len(different) > 3 + (_NODES if cache else 0) + _PUBLICATIONS_A_SECOND * took_s:
        yield failed(
            clause, f"{noun}: {len(different)} instants in {len(seen)} answers: generatedAt is that of serving"
        )
        return
    if seen and (ahead_s := _measure_ahead_s(endpoint, seen[0].at, now)) > _AHEAD_S:
        yield failed(clause, f"{noun}: generatedAt is {ahead_s:.0f} s ahead of its server's clock, and of this one's")
        return
    watched = [each for each in seen if each.name == "watch"]
    if len(watched) < 2:
        age_s = (now - seen[0].at) / 1000 if seen else 0
        if seen and age_s < -_AHEAD_S:
            yield inconclusive(clause, f"{noun}: generatedAt is {-age_s:.0f} s ahead of this machine's clock")
        elif seen:
            text = f"{noun}: generatedAt was {max(0, age_s):.0f} s old"
            if noun == "live report" and age_s > _STOPPED_S:
                text += ": the monitor seems to have stopped"
            yield inconclusive(clause, f"{text}; whether it moves, --wait {_WATCH_S[noun]} watches")
        return
    watched_ms, moved_ms = watched[-1].asked_at - watched[0].asked_at, watched[-1].at - watched[0].at
    still_ms, cached_ms = _STILL_MS[noun]
    at_most_ms = still_ms + (cached_ms if cache else 0)
    text = f"{noun}: generatedAt moved by {moved_ms / 1000:.0f} s in {watched_ms / 1000:.0f} s"
    if watched_ms - moved_ms > at_most_ms:
        yield failed(clause, f"{text}: the monitor has stopped, or publishes too rarely")
    elif moved_ms > 0:
        yield passed(clause, text)
    else:
        yield inconclusive(clause, f"{text}, which is too short to tell")


def _measure_ahead_s(endpoint: EndpointVisit, at: int, now: int) -> float:
    """How far an instant is ahead, by the clock that has it nearer: this machine's, or that of the server's Date."""
    date = next((answer.header("date") for _, answer in endpoint.answers(200)), None)
    try:
        server_at = parsedate_to_datetime(date or "").timestamp() * 1000
    except (ValueError, OverflowError):
        return 0
    return (at - max(now, server_at)) / 1000


def _verify_ended_buckets(history: EndpointVisit) -> Iterator[ClauseFinding]:
    """H16: several histories have the same ended buckets. Each is compared with the one before it,
    so that no more than two are in memory, however many there are."""
    bodies = dict.fromkeys(body for _, body in history.documents())
    if len(bodies) < 2:
        return
    before: EndedBuckets | None = None
    readable = 0
    for buckets in map(read_ended_buckets, bodies):
        if buckets is None:
            continue
        changed = None if before is None else buckets.find_change(before)
        if changed is not None:
            yield failed("H16", f"history: an ended bucket of {quote(changed)} changed")
            return
        before, readable = buckets, readable + 1
    if readable > 1:
        yield passed("H16", f"no ended bucket changed in {readable} histories")
