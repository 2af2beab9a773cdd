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
from lookout.public.terminal import Shown, Standing, View, draw_screen, follow_positions
from lookout_reader import About, AboutNote, History, LiveReport, Update, parse_history, parse_report
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND
from tests.descriptions import an_about

_NO_STANDING: Standing = {}
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


def shown(
    update: Update,
    now: int = NOON,
    width: int = 180,
    waited_ms: float = 0,
    about: About = ABOUT,
    standing: Standing = _NO_STANDING,
) -> str:
    console = Console(width=width, force_terminal=True, color_system="standard", file=StringIO())
    with console.capture() as capture:
        screen = draw_screen(Shown(ADDRESS, about, update, standing), now, View(width, is_ascii=False), waited_ms)
        console.print(screen)
    return capture.get()


def plain(update: Update, now: int = NOON, width: int = 180) -> str:
    return Text.from_ansi(shown(update, now, width)).plain


def an_update(report: LiveReport | None, history: History | None = None, problem: str | None = None) -> Update:
    return Update(NOON, report, problem, history, None, None, received_ago_ms=0)


def test_notes_stand_above_the_rows_until_they_are_over_and_none_is_obeyed() -> None:
    notes = (
        AboutNote("2", "Übung\x1b[31m", ("indexer",), (1, 5), NOON, NOON + HOUR, NOON),
        AboutNote("1", "Slow", (), (), NOON, None, None),
    )
    about = replace(ABOUT, notes=notes)
    screens = {}
    for at, is_ascii in ((NOON, False), (NOON, True), (NOON + HOUR, False)):
        console = Console(width=180, file=StringIO())
        with console.capture() as capture:
            view = View(180, is_ascii=is_ascii)
            console.print(draw_screen(Shown(ADDRESS, about, an_update(a_live(a_row()))), at, view))
        screens[at, is_ascii] = [line.rstrip() for line in capture.get().splitlines() if line.startswith("Note: ")]
    everything = "Note: Slow (everything, from 2026-11-05 12:00 UTC on)"
    scope = "(indexer on Ethereum, 5, from 2026-11-05 12:00 to 13:00 UTC)"
    assert screens[NOON, False] == [f"Note: Übung[31m {scope}", everything]
    assert screens[NOON, True] == [f"Note: ?bung?[31m {scope}", everything]
    assert screens[NOON + HOUR, False] == [everything]


def test_of_many_notes_the_newest_are_shown() -> None:
    notes = tuple(AboutNote(str(n), f"note {n}", (), (), NOON, None, None) for n in range(8))
    text = Text.from_ansi(shown(an_update(a_live(a_row())), about=replace(ABOUT, notes=notes))).plain
    assert text.count("Note: ") == 5


GREEN = "\x1b[32m"


@pytest.mark.parametrize(
    ("row", "word"),
    [
        pytest.param(a_row(), "● no problem seen", id="a current row is a dot and its word"),
        pytest.param(a_row(status="catching-up"), "◆ behind", id="catching up is a diamond"),
        pytest.param(a_row(status="degraded"), "▲ limited", id="degraded is a triangle"),
        pytest.param(a_row(status="unavailable"), "✖ not answering", id="unavailable is a cross"),
        pytest.param(a_row(status="unknown"), "? unknown", id="unknown is a question mark"),
        pytest.param(a_row(status="unmonitored"), "· not watched", id="unmonitored is a small dot"),
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
    assert "the monitor may have stopped" in Text.from_ansi(later).plain


def test_a_clock_that_is_set_back_makes_no_report_younger_than_it_has_been_here() -> None:
    update = an_update(a_live(a_row()))
    told = [Text.from_ansi(shown(update, NOON - MINUTE, waited_ms=waited)).plain for waited in (100_000, 151_000)]
    assert "Report of 100 s ago." in told[0]
    assert "The report is 2 min old: the monitor may have stopped." in told[1]


@pytest.mark.clause("C9")
def test_what_was_read_last_stays_beside_what_is_wrong() -> None:
    text = plain(an_update(a_live(a_row()), problem="no answer"))
    assert "The report cannot be read: no answer." in text
    assert "● no problem seen" in text
    assert "are current" not in text


FIVE = (
    a_row("messaging", None),
    a_row("ppoi"),
    a_row("broadcasters"),
    a_row("indexer"),
    a_row("hosted-indexer"),
)


@pytest.mark.parametrize(
    ("rows", "words", "about"),
    [
        pytest.param(
            FIVE,
            "● All 5 checks: no problem seen.",
            None,
            id="every row there is counts",
        ),
        pytest.param(
            (*FIVE[:-1], a_row("hosted-indexer", status="unmonitored")),
            "● All 4 watched checks: no problem seen.",
            None,
            id="an unmonitored row is neither failure nor health",
        ),
        pytest.param(
            (FIVE[0], *(a_row(row["service"], status="unmonitored") for row in FIVE[1:])),
            "● The only watched check: no problem seen.",
            None,
            id="a single check is called that",
        ),
        pytest.param(
            FIVE[:-1],
            "? 1 of 5 checks: unknown.",
            "hosted-indexer Ethereum",
            id="a row that is missing is unknown",
        ),
        pytest.param(
            (*FIVE, a_row("indexer", 11155111, "unavailable")),
            "● All 5 checks outside test networks: no problem seen.",
            None,
            id="the test network never counts",
        ),
        pytest.param(
            (*FIVE, a_row("relayer", 1, "degraded")),
            "▲ 1 of 6 checks: limited.",
            "relayer Ethereum",
            id="a service that the reader does not know counts",
        ),
        pytest.param(
            (*FIVE, *(row | {"chainId": 8453, "status": "unavailable"} for row in FIVE[1:])),
            "✖ 4 of 9 checks: not answering.",
            "ppoi chain 8453, broadcasters chain 8453, indexer chain 8453 and 1 more",
            id="a chain that only the report has counts",
        ),
        pytest.param(
            [row | {"status": "catching-up"} for row in FIVE],
            "◆ All 5 checks: behind.",
            "messaging, ppoi Ethereum, broadcasters Ethereum and 2 more",
            id="of many some are named",
        ),
        pytest.param(
            [row | {"status": "unmonitored"} for row in FIVE],
            "· Nothing is watched.",
            None,
            id="what is not monitored is not healthy",
        ),
        pytest.param(
            [a_row("messaging", None)],
            "? 4 of 5 checks: unknown.",
            "ppoi Ethereum, broadcasters Ethereum, indexer Ethereum and 1 more",
            id="a chain without rows is not healthy",
        ),
    ],
)
@pytest.mark.clause("C11")
def test_the_head_line_sums_up_the_chains_that_count(
    rows: Sequence[dict[str, Any]], words: str, about: str | None
) -> None:
    lines = plain(an_update(a_live(*rows))).splitlines()
    assert lines[1:3] == [words, about or "Report of 0 s ago."]


@pytest.mark.clause("C9")
@pytest.mark.parametrize("rows", [FIVE, [*FIVE, "nonsense"]], ids=["no answer", "a row that cannot be read"])
def test_in_trouble_nothing_is_said_to_be_current_now(rows: Sequence[Any]) -> None:
    update = an_update(a_live(*rows), problem="no answer" if rows is FIVE else None)
    assert plain(update).splitlines()[1] == "? No problem when last seen."


def test_without_any_report_only_the_trouble_is_told() -> None:
    text = plain(an_update(None, problem="no answer"))
    assert "The report cannot be read: no answer." in text
    assert "current" not in text


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
        ({"position": 9, "head": 9, "missing": 1_200, "extra": 1}, "1,200 missing"),
        ({"position": 9, "head": 9, "extra": 1}, "1 too many"),
        ({}, "synced"),
    ],
)
def test_metrics_are_told_in_words(metrics: dict[str, int], words: str) -> None:
    assert words in plain(an_update(a_live(a_row(metrics=metrics))))


def test_broadcasters_are_heard() -> None:
    assert "3 of 5 heard" in plain(an_update(a_live(a_row("broadcasters", metrics={"responding": 3, "monitored": 5}))))


def test_a_strip_shows_the_worst_of_each_hour_and_says_how_much_was_known() -> None:
    buckets = "c" * 282 + "cckcuc"  # the last hour has something worse than a k
    text = plain(an_update(a_live(a_row()), a_past(buckets)))
    assert "●" * 23 + "✖" in text
    assert "50.00%, 99% known" in text


@pytest.mark.parametrize(
    ("buckets", "uptime", "words"),
    [
        pytest.param("c" * 289, 1.0, "100%, 100% known", id="all of it"),
        pytest.param("-" * 286 + "ccc", 0.9999, "99.99%, 1% known", id="rounded down"),
        pytest.param("cc", 1.0, "100%, under 1% known", id="never none of it"),
        pytest.param("-" * 289, None, "too little known", id="the monitor did not run"),
        pytest.param("?" + "." * 288, None, "too little known", id="it was watched for a while"),
    ],
)
def test_uptime_says_how_much_was_known(buckets: str, uptime: float | None, words: str) -> None:
    assert f" {words} " in plain(an_update(a_live(a_row()), a_past(buckets, uptime)))


def test_80_columns_have_room_for_the_numbers() -> None:
    rows = [
        a_row(metrics={"position": 23_400_000, "head": 23_456_789}),
        a_row("hosted-indexer", 11155111, "unavailable", metrics={}, reason="unreachable"),
        a_row("broadcasters", 1, "degraded", metrics={"responding": 13, "monitored": 15}),
    ]
    lines = plain(an_update(a_live(*rows), a_past("-" + "c" * 300, 0.9931)), width=80).splitlines()[-4:]
    assert [line.split() for line in lines] == [
        ["check", "status", "seen", "ago"],
        ["hosted-indexer", "Sepolia", "✖", "not", "answering", "10", "s", "unreachable"],
        ["broadcasters", "Ethereum", "▲", "limited", "10", "s", "13", "of", "15", "heard"],
        ["indexer", "Ethereum", "●", "no", "problem", "seen", "10", "s", "56,789", "behind"],
    ]


def test_what_is_not_known_is_a_gap_and_lowers_the_coverage() -> None:
    text = plain(an_update(a_live(a_row()), a_past("-" * 144 + "c" * 144, None)))
    assert " " * 12 + "●" * 12 in text
    assert "too little known" in text


def test_a_narrow_terminal_has_no_strip() -> None:
    update = an_update(a_live(a_row()), a_past("c" * 300))
    assert [plain(update, width=width).count("●" * 24) for width in (180, 110, 80)] == [1, 1, 0]


@pytest.mark.clause("C2")
def test_a_clock_that_is_an_hour_slow_shows_nothing_healthy() -> None:
    slow = shown(an_update(a_live(a_row())), NOON - HOUR)
    assert "? unknown" in Text.from_ansi(slow).plain
    assert GREEN not in slow
    assert "ahead of this machine's clock" in Text.from_ansi(slow).plain


@pytest.mark.clause("C2")
def test_a_clock_that_is_known_to_be_behind_shows_nothing_healthy_and_says_why() -> None:
    slow = shown(replace(an_update(a_live(a_row())), clock_ahead_ms=-10.0 * MINUTE))
    assert "? unknown" in Text.from_ansi(slow).plain
    assert GREEN not in slow
    assert "This machine's clock is behind the server's" in Text.from_ansi(slow).plain


@pytest.mark.clause("C12")
def test_the_wording_for_people_is_in_view() -> None:
    text = " ".join(plain(an_update(a_live(a_row()))).split())
    assert "not an official status" in text
    assert "safe to transact" in text


def test_ages_are_told_in_the_unit_that_fits() -> None:
    row = a_row(observedAt=format_instant(NOON - 3 * DAY), expiresAt=format_instant(NOON))
    assert "3 d " in plain(an_update(a_live(row)))


@pytest.mark.clause("C3", "C4")
def test_a_report_that_was_received_long_ago_is_stale_whatever_the_clock_says() -> None:
    old = shown(an_update(a_live(a_row())), waited_ms=5 * MINUTE)
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


@pytest.mark.parametrize("width", [40, 80, 100, 120, 150, 180])
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


def test_a_terminal_that_knows_only_ascii_gets_nothing_else() -> None:
    for width in (30, 80, 180):
        console = Console(width=width, file=StringIO())
        update = an_update(a_live(a_row(), a_row("x" * 20, 10**15)), a_past("cku"))
        with console.capture() as capture:
            console.print(draw_screen(Shown(ADDRESS, ABOUT, update), NOON, View(width, is_ascii=True)))
        capture.get().encode("ascii")


def test_a_position_that_stands_still_is_said_to_once_observations_a_minute_apart_had_it() -> None:
    behind: Any = {"status": "catching-up", "reason": "behind", "metrics": {"position": 641, "head": 1_000}}
    standing: Standing = {}
    said = []
    for seconds in (300, 180, 150, 150, 120):  # at first it is not behind, and the third is received twice
        at = format_instant(NOON - seconds * SECOND)
        was = {"status": "current", "reason": "synced"} if seconds == 300 else {}
        update = an_update(a_live(a_row(**{**behind, **was}, observedAt=at)))
        standing = follow_positions(standing, update)
        said.append("not moving since 11:57 UTC" in shown(update, standing=standing))
    assert said == [False, False, False, False, True]
    moved = an_update(a_live(a_row(**{**behind, "metrics": {"position": 700, "head": 1_000}})))
    assert "not moving" not in shown(moved, standing=follow_positions(standing, moved))
