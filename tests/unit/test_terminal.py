"""What the terminal shows, by the reader's rules: nothing stale or unknown looks healthy."""

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from lookout.base.instants import format_instant, format_second
from lookout.public.terminal import Shown, draw_screen
from lookout_reader import (
    About,
    AboutDissent,
    AboutNote,
    AboutPlace,
    Clocks,
    History,
    LiveReport,
    Update,
    parse_history,
    parse_report,
)
from lookout_reader.clocks import Arrival
from tests.builders import HOUR, MINUTE, NOON, SECOND
from tests.descriptions import an_about

ADDRESS = "http://status.example"
ABOUT = an_about({1: "Ethereum", 11155111: "Sepolia"})


def a_live(*rows: Any, at: int = NOON) -> LiveReport:
    parsed = parse_report(json.dumps({"schemaVersion": 1, "generatedAt": format_instant(at), "checks": rows}))
    assert isinstance(parsed, LiveReport)
    return parsed


def a_row(
    service: str = "indexer", chain_id: int | None = 1, status: str = "current", **more: object
) -> dict[str, Any]:
    return {
        "service": service,
        "chainId": chain_id,
        "status": status,
        "reason": "synced",
        "observedAt": format_instant(NOON - 10 * SECOND),
        "lastSuccessAt": format_instant(NOON - 10 * SECOND),
        "expiresAt": format_instant(NOON + 140 * SECOND),
        "metrics": {"position": 995, "head": 1_000},
        **more,
    }


def a_past(buckets: str, uptime: float | None = 0.5) -> History:
    to_at = NOON
    row = {"service": "indexer", "chainId": 1, "buckets": buckets, "uptime": {"24h": uptime, "7d": None, "14d": None}}
    parsed = parse_history(
        json.dumps(
            {
                "schemaVersion": 1,
                "generatedAt": format_instant(NOON),
                "bucketSeconds": 300,
                "retentionDays": 14,
                "from": format_second(to_at - (len(buckets) - 1) * 5 * MINUTE),
                "to": format_second(to_at),
                "rows": [row],
            }
        )
    )
    assert isinstance(parsed, History)
    return parsed


def shown(update: Update, now: int = NOON, width: int = 180, about: About = ABOUT) -> str:
    console = Console(width=width, force_terminal=True, color_system="standard", file=StringIO())
    with console.capture() as capture:
        console.print(draw_screen(Shown(ADDRESS, about, update), now, width))
    return capture.get()


def plain(update: Update, now: int = NOON, width: int = 180) -> str:
    return Text.from_ansi(shown(update, now, width)).plain


def an_update(report: LiveReport | None, history: History | None = None, problem: str | None = None) -> Update:
    return Update(report, problem, history, None, None, None if problem is None else "no-answer")


def waiting(update: Update, received_ago_ms: float) -> Update:
    return replace(update, arrival=Arrival(lambda: Clocks(NOON, received_ago_ms)))


def test_notes_stand_above_the_rows_until_they_are_over_and_the_newest_are_shown() -> None:
    notes = (
        AboutNote("2", "Übung\x1b[31m", ("indexer",), (1, 5), NOON, NOON + HOUR, NOON),
        *(AboutNote(str(n), "Slow", (), (), NOON, None, None) for n in range(8)),
    )
    update, about = an_update(a_live(a_row())), replace(ABOUT, notes=notes)
    first, later = (Text.from_ansi(shown(update, at, about=about)).plain for at in (NOON, NOON + HOUR))
    assert "Note: Übung?[31m (indexer on Ethereum, chain 5, from 2026-11-05 12:00 to 13:00 UTC)" in first
    assert "Note: Slow (everything, from 2026-11-05 12:00 UTC on)" in first
    assert "Übung" not in later
    assert first.count("Note: ") == later.count("Note: ") == 5


@pytest.mark.clause("W8")
def test_what_a_place_sees_otherwise_is_said_above_the_rows() -> None:
    places = (
        AboutPlace("Frankfurt", "", True, None, ()),
        AboutPlace("Singapore", "", False, None, (AboutDissent("indexer", 1, "unavailable", NOON - HOUR),)),
        AboutPlace("São Paulo\x1b", "", False, NOON - 2 * HOUR, ()),
    )
    row = a_row(metrics={"position": 9, "head": 9, "views": 3, "agreeing": 2})
    text = Text.from_ansi(shown(an_update(a_live(row)), about=replace(ABOUT, places=places))).plain
    assert "Singapore sees indexer Ethereum: not answering since 11:00 UTC. 2 of 3 places see it as published." in text
    assert "São Paulo?: nothing known from there since 10:00 UTC." in text
    assert "from 2 places" in text, "nothing is known from the third"


GREEN = "\x1b[32m"


@pytest.mark.parametrize(
    ("row", "word"),
    [
        pytest.param(a_row(), "● no problem seen", id="a current row is a dot and its word"),
        pytest.param(a_row(status="unavailable"), "✖ not answering", id="unavailable is a cross"),
        pytest.param(a_row(status="unknown"), "? unknown", id="unknown is a question mark"),
        pytest.param(a_row(status="splendid"), "? unknown", id="a status of tomorrow is unknown"),
    ],
)
@pytest.mark.clause("C1", "C4")
def test_each_status_has_a_shape_and_its_word(row: dict[str, Any], word: str) -> None:
    assert word in plain(an_update(a_live(row)))


@pytest.mark.clause("C3", "C4")
def test_a_row_goes_stale_by_the_clock_of_the_machine_that_shows_it() -> None:
    update = an_update(a_live(a_row(), a_row("messaging", None)))
    assert "● no problem seen" in plain(update, NOON)
    later = shown(update, NOON + 3 * MINUTE)
    assert "◌ too old to say" in Text.from_ansi(later).plain
    assert GREEN not in later
    assert "No new report since 12:00 UTC: this is the monitor, not the networks." in Text.from_ansi(later).plain


def test_a_clock_that_is_set_back_makes_no_report_younger_than_it_has_been_here() -> None:
    update = an_update(a_live(a_row()))
    told = [Text.from_ansi(shown(waiting(update, waited), NOON - 20_000)).plain for waited in (99_000, 100_000)]
    assert "No new report" not in told[0]
    assert "No new report for 100 s: this is the monitor, not the networks." in told[1]


FIVE = (
    a_row("messaging", None),
    a_row("ppoi"),
    a_row("broadcasters"),
    a_row("indexer"),
    a_row("hosted-indexer"),
)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        pytest.param(
            (*FIVE[:-1], a_row("hosted-indexer", status="unmonitored")),
            "● No problem seen with sending, balances and proofs on Ethereum.",
            id="an unmonitored row is neither failure nor health",
        ),
        pytest.param(
            FIVE[:-1], "? Nothing is known about balances on Ethereum.", id="a row that is missing is unknown"
        ),
        pytest.param(
            (*FIVE, a_row("indexer", 11155111, "unavailable")),
            "● No problem seen with sending, balances and proofs on Ethereum.",
            id="the test network never counts",
        ),
        pytest.param(
            (*FIVE, *(row | {"chainId": 8453, "status": "unavailable"} for row in FIVE[1:])),
            "✖ Sending may fail on chain 8453. Also: balances may be late on chain 8453;"
            " proofs may be late on chain 8453.",
            id="a chain that only the report has counts",
        ),
    ],
)
@pytest.mark.clause("C11")
def test_the_head_line_sums_up_the_chains_that_count(rows: Sequence[dict[str, Any]], words: str) -> None:
    assert plain(an_update(a_live(*rows))).splitlines()[1] == words


@pytest.mark.clause("C9")
@pytest.mark.parametrize("rows", [FIVE, [*FIVE, "nonsense"]], ids=["no answer", "a row that cannot be read"])
def test_in_trouble_nothing_is_said_to_be_current_now(rows: Sequence[Any]) -> None:
    update = an_update(a_live(*rows), problem="no answer" if rows is FIVE else None)
    assert "No problem when last seen." in plain(update).splitlines()[1]


@pytest.mark.clause("C7")
def test_a_row_that_cannot_be_read_hides_no_other() -> None:
    text = plain(an_update(a_live("nonsense", a_row())))
    assert "? unknown" in text
    assert "● no problem seen" in text


@pytest.mark.parametrize(
    ("metrics", "words"),
    [
        ({"position": 995, "head": 1_000}, "5 behind"),
        ({"position": 1_001, "head": 1_000}, "at 1,001"),
        ({"responding": 3, "monitored": 5}, "3 of 5 answer"),
        ({"peers": 7}, "7 peers"),
        ({"position": 9, "head": 9, "missing": 1_200, "extra": 1}, "missing: 1,200, extra: 1"),
        ({"position": 9, "head": 9, "extra": 1}, "extra: 1"),
        ({}, "synced"),
    ],
)
def test_metrics_are_shown_in_words(metrics: dict[str, int], words: str) -> None:
    assert words in plain(an_update(a_live(a_row(metrics=metrics))))


def test_a_strip_shows_the_worst_of_each_hour() -> None:
    buckets = "c" * 282 + "cckcuc"  # the last hour has something worse than a k
    text = plain(an_update(a_live(a_row()), a_past(buckets)))
    assert "●" * 23 + "✖" in text


@pytest.mark.clause("C2")
def test_a_clock_that_is_an_hour_slow_shows_nothing_healthy() -> None:
    slow = shown(an_update(a_live(a_row())), NOON - HOUR)
    assert "? unknown" in Text.from_ansi(slow).plain
    assert GREEN not in slow
    assert "The report is dated in the future" in Text.from_ansi(slow).plain


@pytest.mark.clause("C2")
def test_a_clock_that_is_known_to_be_behind_shows_nothing_healthy_and_says_why() -> None:
    slow = shown(replace(an_update(a_live(a_row())), clock_ahead_ms=-10.0 * MINUTE))
    assert "? unknown" in Text.from_ansi(slow).plain
    assert GREEN not in slow
    assert "The clock here is behind the server's" in Text.from_ansi(slow).plain


@pytest.mark.clause("C12")
def test_the_wording_for_people_is_in_view() -> None:
    text = " ".join(plain(an_update(a_live(a_row()))).split())
    assert "not an official status" in text
    assert "safe to transact" in text


@pytest.mark.clause("C3", "C4")
def test_a_report_that_was_received_long_ago_is_stale_whatever_the_clock_says() -> None:
    old = shown(waiting(an_update(a_live(a_row())), 5 * MINUTE))
    assert "◌ too old to say" in Text.from_ansi(old).plain
    assert GREEN not in old


@pytest.mark.parametrize("service", ["[/foo]", "[green]future[/green]", "\x1b[2J\x1b]0;title", "a\ud800b", "x" * 500])
def test_what_a_deployment_says_is_shown_and_not_obeyed(service: str) -> None:
    text = shown(an_update(a_live(a_row(service, status="unavailable"), a_row())))
    assert "✖ not answering" in Text.from_ansi(text).plain
    assert "● no problem seen" in Text.from_ansi(text).plain
    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text
    assert GREEN + "future" not in text


@pytest.mark.parametrize("width", [40, 80, 180])
def test_check_and_status_are_whole_at_any_width(width: int) -> None:
    rows = [a_row("hosted-indexer", 11155111, "unavailable"), a_row("indexer", 42161, "catching-up")]
    text = plain(an_update(a_live(*rows), a_past("c" * 300)), width=width)
    assert "hosted-indexer Sepolia" in text
    assert "✖ not answering" in text
    assert "◆ behind" in text


def test_what_is_not_current_comes_first_since_a_terminal_may_be_low() -> None:
    rows = [*(a_row(chain_id=n) for n in range(1, 40)), a_row("hosted-indexer", 11155111, "unavailable")]
    lines = plain(an_update(a_live(*rows)), width=80).splitlines()
    assert lines[-40].startswith("hosted-indexer Sepolia")
