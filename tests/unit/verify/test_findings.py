"""Findings as they are shown, and the clauses there are."""

from pathlib import Path

import pytest

from lookout.base.url import BaseUrlError, parse_base_url
from lookout.verify.clauses import verify_visit
from lookout.verify.visit import EndpointVisit, Exchange, HttpAnswer, Visit

CLAUSES = Path(__file__).parents[3] / "clauses.txt"


def seen(*answers: HttpAnswer) -> Visit:
    exchanges = tuple(Exchange("again", "GET", "/", {}, answer, 0) for answer in answers)
    return Visit(0, EndpointVisit("live report", "/", exchanges), EndpointVisit("history", "/", ()))


def test_every_clause_but_the_readers_gets_one_finding_in_the_contracts_order() -> None:
    of_the_contract = [clause for clause in CLAUSES.read_text().split() if not clause.startswith("C")]
    findings = verify_visit(seen())
    assert [finding.clause for finding in findings] == of_the_contract
    assert {finding.verdict for finding in findings} == {"could not tell"}


def test_a_failure_has_its_first_texts_without_a_servers_control_characters() -> None:
    wrong = [HttpAnswer(200, (("content-type", f"\x1b[31m\u202e{number}"),), b"") for number in range(9)]
    (finding,) = (finding for finding in verify_visit(seen(*wrong)) if finding.clause == "A3")
    assert finding.verdict == "fail"
    assert finding.what.isascii()
    assert finding.what.isprintable()
    assert finding.what.endswith("; and 6 more")


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
