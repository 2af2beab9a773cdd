"""The feed of incidents, judged by feedparser and by the rules of RFC 4287."""

import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import feedparser  # type: ignore[import-untyped]
import pytest

from lookout.base.instants import format_second
from lookout.public.atom import encode_feed
from lookout.public.feeds import make_feed_files
from lookout.public.picture import Names
from lookout_reader import About, AboutChain, AboutNote
from tests.builders import DAY, HOUR, NOON, SECOND
from tests.unit.feeds import (
    BUCKET,
    FULL,
    HOSTILE,
    NAMES,
    NOTE,
    a_check,
    a_history,
    a_picture,
    a_report,
    all_current,
    noted,
)

INDEXER = ("indexer", 1)
ATOM = "{http://www.w3.org/2005/Atom}"
RFC_3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
TAG = re.compile(r"tag:[a-z0-9.-]+,\d{4}(-\d{2}){0,2}:[\w.~!$&'()*+,;=:@/?%-]+", re.ASCII)  # RFC 4151
# What an element must have exactly once, and what it may have at most once.
ONCE = {"feed": ("id", "title", "updated", "author"), "entry": ("id", "title", "updated")}
AT_MOST_ONCE = {
    "feed": ("subtitle", "generator", "icon", "logo", "rights"),
    "entry": ("published", "content", "summary"),
}


def read(body: bytes) -> Any:
    """What feedparser makes of it, after the rules of the format were checked."""
    root = ElementTree.fromstring(body)  # noqa: S314
    assert root.tag == f"{ATOM}feed"
    entries = root.findall(f"{ATOM}entry")
    for element in (root, *entries):
        name = element.tag.removeprefix(ATOM)
        children = [child.tag.removeprefix(ATOM) for child in element]
        assert all(children.count(child) == 1 for child in ONCE[name]), children
        assert all(children.count(child) <= 1 for child in AT_MOST_ONCE[name]), children
        assert TAG.fullmatch(element.findtext(f"{ATOM}id") or "")
        for child in ("updated", "published"):
            assert all(RFC_3339.fullmatch(found.text or "") for found in element.findall(ATOM + child))
        links = [(link.get("rel"), link.get("type"), link.get("href", "")) for link in element.findall(f"{ATOM}link")]
        assert len(set(links)) == len(links)
        assert any(link[:2] == ("alternate", "text/html") and (link[2] or "").startswith("/") for link in links)
    assert len({entry.findtext(f"{ATOM}id") for entry in entries}) == len(entries)
    parsed = feedparser.parse(body)
    assert not parsed.bozo, parsed.bozo_exception
    assert parsed.version == "atom10"
    assert len(parsed.entries) == len(entries)
    assert [entry.updated for entry in parsed.entries] == sorted((e.updated for e in parsed.entries), reverse=True)
    assert parsed.feed.updated == max((entry.updated for entry in parsed.entries), default=parsed.feed.updated)
    return parsed


def a_feed(rows: dict[Any, str], *checks: object, at: int = NOON, to_at: int = NOON) -> Any:
    live = a_report(*(checks or all_current()), at=at)
    return read(encode_feed(a_picture(live, a_history(rows, to_at), at=at), NAMES))


def a_noted_feed(*notes: AboutNote, at: int = NOON) -> Any:
    names = noted(*notes)
    return read(encode_feed(a_picture(a_report(*all_current(), at=at), at=at, names=names), names))


def test_a_note_is_an_entry_from_when_it_was_declared_until_it_is_over() -> None:
    (entry,) = a_noted_feed(NOTE).entries
    assert entry.id == "tag:lookout.invalid,2026:protocol/note/7/2026-11-05T11:00:00Z"
    assert entry.title == "Note: Maintenance"
    assert (entry.published, entry.updated) == ("2026-11-05T11:00:00Z", "2026-11-05T11:00:00Z")
    assert [tag.term for tag in entry.tags] == ["note"]
    assert "About indexer on Polygon, from 2026-11-05 13:00 to 15:00 UTC." in entry.content[0].value
    assert len(a_noted_feed(NOTE, at=NOON + 3 * HOUR - 1).entries) == 1
    assert a_noted_feed(NOTE, at=NOON + 3 * HOUR).entries == []


def test_an_incident_that_is_over_is_one_entry_with_its_begin_its_end_and_its_duration() -> None:
    (entry,) = a_feed({INDEXER: "ccuudcc"}).entries
    assert entry.id == "tag:lookout.invalid,2026:protocol/indexer/1/2026-11-05T11:40:00Z"
    assert entry.title == "indexer on Ethereum: not answering"
    assert (entry.published, entry.updated) == ("2026-11-05T11:40:00Z", "2026-11-05T11:55:00Z")
    assert entry.link == "/#at=2026-11-05T11:40Z&chain=1"
    assert [tag.term for tag in entry.tags] == ["unavailable"]
    assert "from 2026-11-05 11:40:00 UTC to 2026-11-05 11:55:00 UTC (15 min). At worst not answering." in (
        entry.content[0].value
    )


@pytest.mark.parametrize(
    ("buckets", "told"),
    [
        pytest.param("cudc", [], id="both ends were seen"),
        pytest.param("cu-", ["It was not seen to recover: what came after is not known."], id="its end was not"),
        pytest.param("-u?", ["not seen to recover", "may have begun earlier"], id="neither was"),
    ],
)
def test_an_entry_says_what_nobody_saw(buckets: str, told: list[str]) -> None:
    (entry,) = a_feed({("messaging", None): buckets}).entries
    assert re.fullmatch(r"/#at=2026-11-05T11:\d\dZ", entry.link)
    text = entry.content[0].value
    assert all(sentence in text for sentence in told)
    assert ("not seen" in text, "earlier" in text) == (
        any("not seen" in sentence for sentence in told),
        any("earlier" in sentence for sentence in told),
    )


def test_an_entry_keeps_its_id_while_it_lasts_when_it_ends_and_as_the_window_slides() -> None:
    at = NOON
    seen = []
    for buckets in ("c" * (FULL - 1) + "d", "c" * (FULL - 2) + "du", "c" * (FULL - 3) + "duc"):
        (entry,) = a_feed({INDEXER: buckets}, at=at, to_at=at).entries
        seen.append((entry.id, entry.published, entry.updated))
        at += BUCKET
    began = format_second(NOON)
    assert {(entry_id, published) for entry_id, published, _ in seen} == {(seen[0][0], began)}
    assert [updated for _, _, updated in seen] == [began, began, format_second(NOON + 2 * BUCKET)]


def test_a_row_that_is_bad_for_longer_than_the_window_is_one_entry_that_is_news_once_a_day() -> None:
    entries = []
    for later in range(0, DAY, DAY // 8):
        (entry,) = a_feed({INDEXER: "u" * FULL}, at=NOON + later, to_at=NOON + later).entries
        entries.append((entry.id, entry.updated))
    assert len({entry_id for entry_id, _ in entries}) == 1
    assert len({updated for _, updated in entries}) == 2  # the day changes once


@pytest.mark.clause("M14", "C4")
def test_a_silent_monitor_is_said_once_and_its_old_rows_are_not_called_bad() -> None:
    live = a_report(*all_current(a_check("unavailable")))
    at_first = read(encode_feed(a_picture(live, at=NOON + 300 * SECOND), NAMES))
    later = read(encode_feed(a_picture(live, at=NOON + DAY), NAMES))
    for found in (at_first, later):
        (entry,) = found.entries
        assert entry.title == "The monitor has been silent since 2026-11-05 12:00:00 UTC"
        assert "silent since" in found.feed.subtitle
    assert at_first.entries[0].id == later.entries[0].id
    assert at_first.entries[0].updated == later.entries[0].updated
    assert read(encode_feed(a_picture(live, at=NOON + 299 * SECOND), NAMES)).entries == []


def test_a_feed_without_a_history_says_so() -> None:
    found = read(encode_feed(a_picture(a_report(*all_current())), NAMES))
    assert found.entries == []
    assert "The history cannot be read" in found.feed.subtitle
    assert "The history cannot be read" not in a_feed({INDEXER: "ccc"}).feed.subtitle


def test_the_feed_of_a_chain_has_its_incidents_and_notes_and_those_of_all_chains() -> None:
    past = {("messaging", None): "ccucc", INDEXER: "ccddc", ("indexer", 137): "ckkkc"}
    about = {"of all": (), "of Ethereum": (1,), "of Polygon": (137,)}
    names = noted(*(replace(NOTE, note_id=text, text=text, chains=chains) for text, chains in about.items()))
    made = make_feed_files(names, a_report(*all_current()), a_history(past), NOON, 0)
    everything = {entry.id for entry in read(made.files["/feed.atom"].body).entries}  # type: ignore[union-attr]
    file = made.feed_of_chain("/feed/1.atom")
    assert file is not None
    found = read(file.body)
    assert {entry.title for entry in found.entries} == {
        "messaging: not answering",
        "indexer on Ethereum: limited",
        "Note: of all",
        "Note: of Ethereum",
    }
    assert {entry.id for entry in found.entries} < everything
    assert (found.feed.title, found.feed.link) == ("Incidents · Lookout · Ethereum", "/#chain=1")
    assert found.feed.id != read(made.files["/feed.atom"].body).feed.id  # type: ignore[union-attr]
    for path in ("/feed/2.atom", "/feed/1.json", "/feed/1", "/feed/01.atom"):
        assert made.feed_of_chain(path) is None


@pytest.mark.clause("C12")
def test_it_says_what_it_does_not_say() -> None:
    found = a_feed({("broadcasters", 1): "cdc", ("ppoi", 1): "ckc"})
    assert "no official status" in found.feed.subtitle
    ppoi, broadcasters = sorted((entry.content[0].value for entry in found.entries), key=len, reverse=True)
    assert "partial reading" in broadcasters
    assert "your wallet's proofs" in ppoi


@pytest.mark.clause("C5")
def test_names_with_marks_of_xml_leave_it_whole() -> None:
    service = f"odd/{HOSTILE}"
    live = a_report(a_check("unavailable", service), a_check("degraded", chain_id=5))
    history = a_history({(service, 1): "cuc", ("indexer", 5): "cuu", (service, None): "cdd"})
    names = Names("protocol", About({5: AboutChain(5, HOSTILE, False)}, (), "", "", "", ()))
    found = read(encode_feed(a_picture(live, history), names))
    assert len(found.entries) == 3
    assert {entry.title for entry in found.entries} >= {
        """indexer on <b>&amp;"' ]]> \N{SNOWMAN}: not answering""",
        """odd/<b>&amp;"' ]]> \N{SNOWMAN}: limited""",
    }
