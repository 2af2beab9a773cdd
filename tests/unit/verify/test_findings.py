"""Findings as they are merged and shown, and the clauses there are."""

from pathlib import Path

import pytest

from lookout.base.base_url import BaseUrlError, parse_base_url
from lookout.verify.caches import find_cache_sign, is_hit
from lookout.verify.client import HttpAnswer
from lookout.verify.findings import failed, inconclusive, merge_findings, passed, quote
from lookout.verify.verdict import verify_visit
from lookout.verify.visit import EndpointVisit, Visit, parse_opaque_tag

CLAUSES = Path(__file__).parents[3] / "clauses.txt"


def test_every_clause_but_the_readers_gets_one_finding_in_the_contracts_order() -> None:
    nothing = Visit(
        "http://host", "protocol", 0, EndpointVisit("live report", "/", ()), EndpointVisit("history", "/", ()), ()
    )
    of_the_contract = [clause for clause in CLAUSES.read_text().split() if not clause.startswith("C")]
    findings = verify_visit(nothing)
    assert [finding.clause for finding in findings] == of_the_contract
    assert {finding.verdict for finding in findings} == {"could not tell"}


def test_the_worst_verdict_of_a_clause_wins_with_its_own_texts() -> None:
    findings = [passed("A1", "fine"), failed("A1", "a"), inconclusive("A1", "?"), failed("A1", "b"), failed("A1", "a")]
    assert merge_findings(findings) == [failed("A1", "a; b")]
    assert merge_findings(findings[:1] + findings[2:3]) == [inconclusive("A1", "?")]


def test_many_texts_are_counted() -> None:
    assert merge_findings(failed("R3", str(number)) for number in range(9)) == [failed("R3", "0; 1; 2; and 6 more")]


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


def test_a_cache_gives_itself_away() -> None:
    bare = HttpAnswer(200, (("server", "any"), ("date", "now")), b"")
    behind = HttpAnswer(200, (("via", "1.1 varnish"),), b"")
    assert find_cache_sign([bare]) is None
    assert find_cache_sign([bare, behind]) == "via: 1.1 varnish"
    assert find_cache_sign([HttpAnswer(200, (("server", "cloudflare"),), b"")]) == "server: cloudflare"


@pytest.mark.parametrize(
    ("header", "hit"),
    [
        (("age", "3"), True),
        (("age", "0"), False),
        (("x-varnish", "12 3"), True),
        (("x-varnish", "12"), False),
        (("x-cache", "HIT"), True),
        (("cf-cache-status", "MISS"), False),
    ],
)
def test_hits(header: tuple[str, str], hit: bool) -> None:
    assert is_hit(HttpAnswer(200, (header,), b"")) is hit
