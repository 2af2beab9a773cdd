"""The summary in Statuspage's shape: what its words stand for, and that they stand for nothing better."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lookout.public.badges import COLOURS, MESSAGES
from lookout.public.picture import Names
from lookout.public.summary import COMPONENT_STATUSES, INDICATORS, encode_summaries
from lookout_reader import AboutNote
from tests.builders import HOUR, NOON
from tests.unit.feeds import HOSTILE, NAMES, NOTE, a_check, a_history, a_picture, a_report, all_current, noted
from tools.openapi import describe_api


def a_summary(*checks: object, history: bytes | None = None, at: int = NOON, names: Names = NAMES) -> Any:
    picture = a_picture(a_report(*checks), history, at=at, names=names)
    found, status = map(json.loads, encode_summaries(picture, names))
    described = describe_api("protocol")["components"]
    Draft202012Validator({"$ref": "#/components/schemas/Summary", "components": described}).validate(found)
    Draft202012Validator({"$ref": "#/components/schemas/StatusReport", "components": described}).validate(status)
    assert status == {key: found[key] for key in ("page", "status", "scheduled_maintenances")}
    return found


@pytest.mark.parametrize(
    ("at", "statuses"),
    [
        (NOON, ["scheduled"]),
        (NOTE.from_at - 1, ["scheduled"]),
        (NOTE.from_at, ["in_progress"]),
        (NOTE.from_at + 2 * HOUR, []),
    ],
)
def test_a_note_is_a_maintenance_that_changes_nothing_else(at: int, statuses: list[str]) -> None:
    checks = all_current(a_check("unavailable", chain_id=137))
    found, without = a_summary(*checks, at=at, names=noted(NOTE)), a_summary(*checks, at=at)
    maintenances = found.pop("scheduled_maintenances")
    assert without.pop("scheduled_maintenances") == []
    assert found == without
    assert [each["status"] for each in maintenances] == statuses
    for each in maintenances:
        assert (each["id"], each["name"]) == ("note-7", "Maintenance")
        assert (each["scheduled_for"], each["scheduled_until"]) == (
            "2026-11-05T13:00:00.000Z",
            "2026-11-05T15:00:00.000Z",
        )
        assert each["components"] == [each for each in found["components"] if each["id"] == "indexer-137"]


def test_a_note_about_everything_names_so_many_components_and_may_have_no_end() -> None:
    note = AboutNote("1", HOSTILE, (), (), NOON, None, None)
    many = [a_check("current", chain_id=chain_id) for chain_id in range(1, 200)]
    (found,) = a_summary(*many, names=noted(note))["scheduled_maintenances"]
    assert (len(found["components"]), found["scheduled_until"]) == (100, None)
    assert found["created_at"] == found["started_at"]


@pytest.mark.clause("C1", "C4")
@pytest.mark.parametrize(
    ("status", "component", "indicator", "word", "headline"),
    [
        (
            "current",
            "operational",
            "none",
            "no problem seen",
            "No problem seen with sending, balances and proofs on all 4 networks.",
        ),
        ("catching-up", "degraded_performance", "minor", "behind", "Balances may be late on Ethereum."),
        ("degraded", "partial_outage", "major", "limited", "Balances may be late on Ethereum."),
        ("unavailable", "major_outage", "critical", "not answering", "Balances may be late on Ethereum."),
        ("unknown", "degraded_performance", "minor", "unknown", "Nothing is known about balances on Ethereum."),
        ("splendid", "degraded_performance", "minor", "unknown", "Nothing is known about balances on Ethereum."),
    ],
)
def test_a_status_has_its_word_in_statuspage(
    status: str, component: str, indicator: str, word: str, headline: str
) -> None:
    found = a_summary(*all_current(a_check(status)))
    (row,) = [component for component in found["components"] if component["id"] == "indexer-1"]
    assert (row["name"], row["status"]) == ("indexer on Ethereum", component)
    assert row["description"].startswith(f"{word}: ")
    assert found["status"]["indicator"] == indicator
    assert found["status"]["description"].startswith(headline)
    assert "As of 2026-11-05 12:00:00 UTC." in found["status"]["description"]


@pytest.mark.clause("C1", "C12")
def test_what_nobody_watches_is_no_component_and_nothing_watched_is_not_well() -> None:
    found = a_summary(*all_current(a_check("unmonitored", "hosted-indexer", 1)))
    assert "hosted-indexer-1" not in {component["id"] for component in found["components"]}
    assert [component["position"] for component in found["components"]] == list(range(1, 17))
    assert found["status"]["indicator"] == "none"
    nothing = a_summary(*(a_check("unmonitored", c["service"], c["chainId"]) for c in all_current()))
    assert (nothing["components"], nothing["status"]["indicator"]) == ([], "minor")
    assert "Nothing is watched" in nothing["status"]["description"]


def test_incidents_are_those_that_last_of_rows_that_have_not_recovered() -> None:
    checks = all_current(a_check("unavailable"), a_check("unknown", chain_id=137))
    history = a_history({("indexer", 1): "cuu", ("indexer", 137): "ckk", ("ppoi", 1): "ccd", ("ppoi", 56): "cuc"})
    found = {incident["id"]: incident for incident in a_summary(*checks, history=history)["incidents"]}
    assert set(found) == {"indexer-1-2026-11-05T11:55:00.000Z", "indexer-137-2026-11-05T11:55:00.000Z"}
    one = found["indexer-1-2026-11-05T11:55:00.000Z"]
    assert (one["impact"], one["started_at"], one["resolved_at"]) == ("critical", "2026-11-05T11:55:00.000Z", None)
    assert [component["id"] for component in one["components"]] == ["indexer-1"]
    assert found["indexer-137-2026-11-05T11:55:00.000Z"]["impact"] == "minor"


def test_what_words_and_colours_stand_for_is_documented() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
    for status in ("current", "catching-up", "degraded", "unavailable", "unknown"):
        named = f"`{status}`, or stale" if status == "unknown" else f"`{status}`"
        assert f"| {named} | `{COMPONENT_STATUSES[status]}` | `{INDICATORS[status]}` |" in page
        assert f"| `{status}` | {MESSAGES[status]} | " in page
        assert f", `{COLOURS[status]}` |" in page
    assert (COMPONENT_STATUSES["stale"], INDICATORS["stale"]) == (COMPONENT_STATUSES["unknown"], INDICATORS["unknown"])
    assert f"| stale | {MESSAGES['stale']} | grey, `{COLOURS['stale']}` |" in page
