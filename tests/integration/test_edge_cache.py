"""The shared cache of the reference edge: freshness, staleness, copies (E3, E4), in seconds instead of minutes."""

import json
import socket
import threading
import time
from collections.abc import Callable

import pytest

from tests.integration.edged import (
    Edge,
    Origin,
    Script,
    babbles,
    caching,
    fails,
    needs_varnish,
    says,
)
from tests.integration.raw import Answer
from tests.integration.served import HISTORY, LIVE
from tests.wait import until

pytestmark = needs_varnish

STALE_S = 1.2  # when a copy that is fresh for one second is not any more
LONG = caching(fresh=60)
SOON_STALE = caching(fresh=1, while_revalidate=0, if_error=60)


def header(answer: Answer, name: str) -> str:
    return dict(answer.headers)[name]


@pytest.mark.clause("E3")
def test_a_fresh_copy_is_served_without_asking_the_origin_and_names_its_age(edge: Edge, origin: Origin) -> None:
    origin.script = says("first", "Age: 10", cache_control=LONG)
    assert edge.ask().body == b"first"
    time.sleep(1.1)
    answers = [edge.ask(method, LIVE) for method in ("GET", "HEAD", "GET")]
    assert [answer.body for answer in answers] == [b"first", b"", b"first"]
    assert all(11 <= int(header(answer, "age")) < 20 for answer in answers)
    assert all(header(answer, "cache-control") == LONG for answer in answers)
    assert len(origin.asked) == 1


@pytest.mark.clause("E3")
def test_a_copy_just_past_its_freshness_is_served_at_once_while_one_request_fetches_another(
    edge: Edge, origin: Origin
) -> None:
    origin.script = says("first", cache_control=caching(fresh=1, while_revalidate=30, if_error=60))
    edge.ask()
    time.sleep(STALE_S)
    released, second = threading.Event(), says("second", cache_control=LONG)

    def holds(connection: socket.socket) -> None:
        released.wait(20)
        second(connection)

    origin.script = holds
    assert {answer.body for answer in edge.at_once(20)} == {b"first"}
    until(lambda: len(origin.asked) > 1, "another copy is being fetched")
    assert len(origin.asked) == 2
    released.set()
    until(lambda: edge.ask().body == b"second", "the new copy is there")


@pytest.mark.clause("E3")
def test_an_older_copy_is_not_served_while_the_origin_answers_and_all_wait_for_the_same_new_one(
    edge: Edge, origin: Origin
) -> None:
    origin.script = says("first", cache_control=SOON_STALE)
    edge.ask()
    time.sleep(STALE_S)
    origin.script = says("second", cache_control=LONG, after_s=0.5)
    assert {answer.body for answer in edge.at_once(30)} == {b"second"}
    assert len(origin.asked) == 2


@pytest.mark.clause("E3")
@pytest.mark.parametrize(
    ("script", "while_revalidate"),
    [
        pytest.param(fails(503), 0, id="503"),
        pytest.param(says("other", cache_control="max-age=60"), 0, id="200 of somebody else's"),
        pytest.param(says("second", cut=3), 0, id="a body that breaks off"),
        pytest.param(babbles, 30, id="no HTTP in the background"),
    ],
)
def test_nothing_but_a_whole_document_replaces_the_last_good_copy(
    edge: Edge, origin: Origin, script: Script, while_revalidate: int
) -> None:
    origin.script = says("first", cache_control=caching(1, while_revalidate, if_error=60))
    edge.ask()
    time.sleep(STALE_S)
    origin.script = script
    answers = [edge.ask() for _ in range(3)]
    until(lambda: len(origin.asked) > 1, "the origin was tried")
    time.sleep(0.1)
    answers.append(edge.ask())
    assert [(answer.http_code, answer.body) for answer in answers] == [(200, b"first")] * 4
    assert all(int(header(answer, "age")) >= 1 for answer in answers)


@pytest.mark.clause("E3", "E2")
def test_what_the_server_refuses_one_reader_keeps_no_copy_of_others_from_being_replaced(
    edge: Edge, origin: Origin
) -> None:
    answers = says("first", cache_control=caching(1, 1, 60))
    refuses = fails(429)

    def by_reader(connection: socket.socket) -> None:
        (refuses if "https://banned.example" in origin.asked[-1] else answers)(connection)

    origin.script = by_reader
    edge.ask()
    answers = says("second", cache_control=caching(1, 1, 60))
    until(
        lambda: (
            edge.ask("GET", LIVE, "Origin: https://banned.example").http_code == 429 and edge.ask().body == b"second"
        ),
        "the others' copy is replaced, long before the old one may not be served any more",
    )


def kill(origin: Origin) -> None:
    origin.die()


def break_down(origin: Origin) -> None:
    origin.script = fails(503)


@pytest.mark.clause("E3")
@pytest.mark.parametrize(("trouble", "while_revalidate"), [(kill, 1), (break_down, 0)], ids=["killed", "answers 503"])
def test_after_a_failure_the_last_good_copy_is_served_until_stale_if_error_is_over_and_no_longer(
    edge: Edge, origin: Origin, trouble: Callable[[Origin], None], while_revalidate: int
) -> None:
    origin.script = says("first", cache_control=caching(1, while_revalidate, if_error=2))
    before = time.monotonic()
    edge.ask()
    after = time.monotonic()
    trouble(origin)
    served: list[float] = []
    while True:
        asked_at = time.monotonic()
        answer = edge.ask()
        if answer.http_code != 200:
            break
        assert answer.body == b"first"
        served.append(asked_at)
        time.sleep(0.05)
    assert time.monotonic() - before >= 3
    assert served[-1] - after <= 3.05
    assert answer.http_code == 503
    assert header(answer, "cache-control") == "no-store"
    if trouble is kill:
        assert isinstance(json.loads(answer.body)["message"], str)
    else:
        origin.script = says("second")
        assert edge.ask().body == b"second"


@pytest.mark.clause("E3", "A11")
def test_an_error_before_the_first_document_is_passed_on_and_never_kept(edge: Edge, origin: Origin) -> None:
    origin.script = fails(503)
    refused = edge.ask()
    assert (refused.http_code, refused.body) == (503, b'{"error":"no"}')
    assert header(refused, "access-control-allow-origin") == "*"
    origin.script = says("first", cache_control=LONG)
    assert [edge.ask().body for _ in range(3)] == [b"first"] * 3
    assert len(origin.asked) == 2
    time.sleep(1.2)  # what remembers the error for a second is gone
    assert edge.ask().body == b"first"
    assert len(origin.asked) == 2


@pytest.mark.clause("E3")
def test_a_304_of_the_origin_makes_the_copy_fresh_again(edge: Edge, origin: Origin) -> None:
    origin.script = says("first", cache_control=SOON_STALE)
    edge.ask()
    time.sleep(STALE_S)
    origin.script = lambda connection: connection.sendall(
        b'HTTP/1.1 304 Not Modified\r\nETag: "first"\r\nConnection: close\r\n'
        b"Cache-Control: " + LONG.encode() + b"\r\n\r\n"
    )
    plain = edge.ask()
    assert (plain.http_code, plain.body, header(plain, "etag")) == (200, b"first", '"first"')
    assert header(plain, "age") == "0"
    assert header(plain, "cache-control") == LONG
    assert len(origin.asked) == 2
    assert 'If-None-Match: "first"' in origin.asked[1]


@pytest.mark.clause("E4", "A6")
def test_there_is_a_copy_for_each_origin_and_none_for_a_query_string(edge: Edge, origin: Origin) -> None:
    bodies = {}
    for name in ("https://a.example", "https://b.example", "null"):
        origin.script = says(name, cache_control=LONG)
        bodies[name] = edge.ask("GET", LIVE, f"Origin: {name}").body.decode()
    origin.script = says("nobody", cache_control=LONG)
    nobody = edge.ask()
    assert all(name == body for name, body in bodies.items())
    assert nobody.body == b"nobody"
    origin.script = says("another", cache_control=LONG)
    for query in ("?", "?x=1", "?%00", "?a=1&b=2/../x"):
        for name in bodies:
            answer = edge.ask("GET", LIVE + query, f"Origin: {name}")
            assert answer.body == name.encode()
            assert header(answer, "vary") == "Accept-Encoding"
    assert edge.ask("GET", HISTORY).body == b"another"
    assert len(origin.asked) == 5


@pytest.mark.clause("E4", "A14")
def test_nothing_else_that_a_reader_says_makes_another_copy(edge: Edge, origin: Origin) -> None:
    origin.script = says("first", cache_control=LONG)
    for said in ("Cookie: a=1", "Authorization: Basic eDp5", "Cache-Control: no-cache", "Range: bytes=0-1"):
        for more in ((said,), (), (said, "Accept: text/html")):
            answer = edge.ask("GET", LIVE, *more)
            assert (answer.http_code, answer.body) == (200, b"first"), said
    assert len(origin.asked) == 1


OWN = (
    "/",
    "/summary.json",
    "/feed.atom",
    "/badge.svg",
    "/badge/indexer/1.json",
    "/openapi.json",
    "/about.json",
    "/embed.js",
    "/assets/page.js",
)


@pytest.mark.clause("E1", "A5")
def test_the_operators_own_routes_are_kept_for_their_lifetime_one_copy_for_all(edge: Edge, origin: Origin) -> None:
    allowed = "public, max-age=60, must-revalidate"
    for number, path in enumerate(OWN, 1):
        origin.script = says("first", "Age: 10", content_type="image/svg+xml", cache_control=allowed)
        assert edge.ask("GET", path).body == b"first"
        origin.script = says("second", cache_control=allowed)
        for said in ("Origin: https://a.example", "Cookie: a=1", "Cache-Control: no-cache", "Range: bytes=0-1"):
            answer = edge.ask("GET", f"{path}?x={number}", said)
            assert (answer.http_code, answer.body) == (200, b"first"), said
        head = edge.ask("HEAD", path)
        assert (head.http_code, head.body, header(head, "content-type")) == (200, b"", "image/svg+xml")
        assert int(header(head, "age")) >= 10, "a browser counts the time in here too"
        unchanged = edge.ask("GET", path, 'If-None-Match: "other", W/"first"')
        assert (unchanged.http_code, unchanged.body) == (304, b"")
        assert len(origin.asked) == number, path


@pytest.mark.clause("E1")
@pytest.mark.parametrize(
    "trouble", [says("second", cache_control="max-age=60"), fails(503)], ids=["another answer", "a failure"]
)
def test_a_copy_of_an_own_route_is_not_used_for_a_moment_longer_than_it_allows(
    edge: Edge, origin: Origin, trouble: Script
) -> None:
    origin.script = says("first", cache_control="public, max-age=1, must-revalidate, stale-if-error=60")
    assert edge.ask("GET", "/summary.json").body == b"first"
    origin.script = trouble
    time.sleep(STALE_S)
    assert edge.ask("GET", "/summary.json").body != b"first"
