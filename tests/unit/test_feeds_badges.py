"""Badges: what they say, in which colour, and that they hold their text."""

import json
from typing import get_args
from xml.etree import ElementTree

import pytest

from lookout.public.badges import COLOURS, MESSAGES, draw_badge, encode_shield
from lookout.public.feeds import make_feed_files
from lookout_reader import EffectiveStatus
from tests.builders import NOON, SECOND
from tests.unit.feeds import HOSTILE, NAMES, a_check, a_report

GREEN, GREY = "0b7a5e", "6d737c"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.clause("C4")
@pytest.mark.parametrize(
    ("status", "message", "colour"),
    [
        ("current", "no problem seen", GREEN),
        ("unavailable", "not answering", "b9310a"),
        ("stale", "too old to say", GREY),
    ],
)
def test_a_status_has_its_word_and_its_colour(status: EffectiveStatus, message: str, colour: str) -> None:
    assert json.loads(encode_shield("indexer", status, 15)) == {
        "schemaVersion": 1,
        "label": "indexer",
        "message": message,
        "color": colour,
        "cacheSeconds": 15,
    }
    root = ElementTree.fromstring(draw_badge("indexer", status, "in full"))  # noqa: S314
    assert [text.text for text in root.iter(f"{SVG}text")] == ["indexer", message]
    assert f"#{colour}" in [rect.get("fill") for rect in root.iter(f"{SVG}rect")]
    assert (root.get("role"), root.get("aria-label")) == ("img", f"indexer: {message}")
    assert root.findtext(f"{SVG}title") == "in full"


def test_every_status_has_a_badge_and_one_alone_is_green() -> None:
    assert set(COLOURS) == set(MESSAGES) == set(get_args(EffectiveStatus))
    assert [status for status, colour in COLOURS.items() if colour == GREEN] == ["current"]


@pytest.mark.parametrize(
    "label",
    ["i", "indexer on Ethereum", "W" * 60, "x" * 500, "\N{SNOWMAN}\N{CJK UNIFIED IDEOGRAPH-4E00}", "<&>\"'", ""],
)
def test_the_picture_has_room_for_its_text(label: str) -> None:
    root = ElementTree.fromstring(draw_badge(label, "current", label))  # noqa: S314
    left, right = root.iter(f"{SVG}text")
    _, split, rest = root.iter(f"{SVG}rect")
    label_ends = float(left.get("x", "")) + float(left.get("textLength", ""))
    assert label_ends < float(split.get("width", ""))
    assert float(right.get("x", "")) + float(right.get("textLength", "")) < float(root.get("width", ""))
    assert float(rest.get("x", "")) + float(rest.get("width", "")) == float(root.get("width", "")) < 900


@pytest.mark.clause("C3", "C4", "C12")
def test_a_badge_of_a_row_says_in_full_what_was_seen_when() -> None:
    live = a_report(a_check("current"), a_check("unmonitored", "ppoi", 137))
    seen = "indexer on Ethereum: no problem seen, seen 2026-11-05 12:00:00 UTC. "
    for later, expected in ((149, seen), (150, seen.replace("no problem seen", "too old to say"))):
        made = make_feed_files(NAMES, live, None, NOON + later * SECOND, 0)
        assert title(made.badge_of_row("/badge/indexer/1.svg")).startswith(expected)
        assert "no official status" in title(made.badge_of_row("/badge/indexer/1.svg"))
        assert title(made.badge_of_row("/badge/ppoi/137.svg")).startswith(
            "ppoi on Polygon: not watched, never looked at. "
        )
        assert title(made.files["/badge.svg"]).startswith("services: ")
        assert ", as of 2026-11-05 12:00:00 UTC. " in title(made.files["/badge.svg"])


@pytest.mark.clause("C5")
def test_a_row_of_any_name_has_a_badge_that_is_whole() -> None:
    live = a_report(a_check("current", HOSTILE), a_check("current", f"a/{HOSTILE}", None))
    made = make_feed_files(NAMES, live, None, NOON, 0)
    for path in (f"/badge/{HOSTILE}/1", f"/badge/a/{HOSTILE}"):
        assert title(made.badge_of_row(f"{path}.svg"))
        assert message(made.badge_of_row(f"{path}.json")) == "no problem seen"


def message(file: object) -> object:
    return json.loads(file.body)["message"]  # type: ignore[attr-defined]


def title(file: object) -> str:
    return ElementTree.fromstring(file.body).findtext(f"{SVG}title") or ""  # type: ignore[attr-defined] # noqa: S314
