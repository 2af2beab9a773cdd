"""Findings as they are merged and shown, and the clauses there are."""

from pathlib import Path

import pytest

from lookout.base.url import BaseUrlError, parse_base_url
from lookout.verify.clauses import merge_remarks, verify_visit
from lookout.verify.client import HttpAnswer, HttpRequest
from lookout.verify.documents import failed, inconclusive, passed, quote
from lookout.verify.visit import EndpointVisit, Exchange, Visit, parse_opaque_tag

CLAUSES = Path(__file__).parents[3] / "clauses.txt"


def seen(*answers: HttpAnswer) -> Visit:
    exchanges = tuple(Exchange("again", HttpRequest("GET", "/", ()), answer, 0) for answer in answers)
    live, history = EndpointVisit("live report", "/", exchanges), EndpointVisit("history", "/", ())
    return Visit("http://host", "protocol", 0, live, history, ())


def test_every_clause_but_the_readers_gets_one_finding_in_the_contracts_order() -> None:
    of_the_contract = [clause for clause in CLAUSES.read_text().split() if not clause.startswith("C")]
    findings = verify_visit(seen())
    assert [finding.clause for finding in findings] == of_the_contract
    assert {finding.verdict for finding in findings} == {"could not tell"}


def test_the_worst_verdict_of_a_clause_wins_with_its_own_texts() -> None:
    remarks = [passed("fine"), failed("a"), inconclusive("?"), failed("b"), failed("a")]
    assert merge_remarks(remarks) == failed("a; b")
    assert merge_remarks(remarks[:1] + remarks[2:3]) == inconclusive("?")


def test_many_texts_are_counted() -> None:
    assert merge_remarks(failed(str(number)) for number in range(9)) == failed("0; 1; 2; and 6 more")


def test_what_a_stranger_sent_cannot_reach_the_terminal() -> None:
    shown = quote("\x1b[31m\u202e" + "x" * 1000)
    assert shown.isascii()
    assert shown.isprintable()
    assert len(shown) <= 83


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://host/", "http://host"),
        ("https://host:443", "https://host"),
        ("HTTP://Host:80/prefix/", "http://host/prefix"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_addresses_that_can_be_used(url: str, base: str) -> None:
    assert str(parse_base_url(url)) == base


@pytest.mark.parametrize(
    "url",
    [
        *("", "host", "//host", "ftp://host", "http://", "http://[::1", "http://host:0", "http://host:x"),
        *("http://host?x", "http://host#x", "http://a@host", "http://ho st", "http://host/\r\nX: y"),
    ],
)
def test_addresses_that_cannot(url: str) -> None:
    with pytest.raises(BaseUrlError):
        parse_base_url(url)


@pytest.mark.parametrize(
    ("etag", "tag"),
    [('"abc"', '"abc"'), ('W/"abc"', '"abc"'), ("abc", None), ('"a"b"', None), ("", None), (None, None), ("*", None)],
)
def test_entity_tags(etag: str | None, tag: str | None) -> None:
    assert parse_opaque_tag(etag) == tag


@pytest.mark.parametrize(
    ("header", "sign"),
    [
        (("date", "now"), None),
        (("server", "granian"), None),
        (("server", "cloudflare"), "server: cloudflare"),
        (("via", "1.1 varnish"), "via: 1.1 varnish"),
    ],
)
def test_a_cache_gives_itself_away(header: tuple[str, str], sign: str | None) -> None:
    assert seen(HttpAnswer(200, (), b""), HttpAnswer(200, (header,), b"")).cache == sign
