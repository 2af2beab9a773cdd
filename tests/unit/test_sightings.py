"""Which announcement says what is known of a broadcaster, and who is among those monitored."""

from typing import Any

import pytest
from msgspec.structs import replace

from lookout.core.model import Members
from lookout.protocols.broadcasters.announcements import Announcement
from lookout.protocols.broadcasters.seen import BroadcastersTable, Sighting, Sightings
from tests.builders import DAY, HOUR, MINUTE, NOON, SECOND

KNOWN = Announcement("0zk1a", None, NOON - 30 * SECOND, NOON + 4 * MINUTE, 2)
SILENT = replace(KNOWN, sent_at=NOON - HOUR, expires_at=NOON - HOUR + 5 * MINUTE)


def sightings_of(*known: Announcement, **changed: Any) -> Sightings:
    settings = BroadcastersTable(**{"url": "http://w", "chains": (1,), "limit": 2, **changed})
    return Sightings(settings, [Sighting(1, each) for each in known])


def by(address: str, sent_at: int) -> Announcement:
    return replace(KNOWN, address=address, sent_at=sent_at, expires_at=sent_at + 5 * MINUTE)


@pytest.mark.clause("S10")
@pytest.mark.parametrize(
    ("known", "announcement", "expected"),
    [
        pytest.param(KNOWN, KNOWN, False, id="the very same again"),
        pytest.param(KNOWN, replace(KNOWN, expires_at=NOON + 5 * MINUTE), True, id="a later expiry"),
        pytest.param(
            KNOWN, replace(KNOWN, expires_at=NOON + 5 * MINUTE, sent_at=NOON - MINUTE), True, id="though sent before"
        ),
        pytest.param(
            KNOWN,
            replace(KNOWN, expires_at=NOON + HOUR, sent_at=NOON - 3 * MINUTE),
            False,
            id="a later expiry in an older page does not silence who answers",
        ),
        pytest.param(
            SILENT, replace(SILENT, expires_at=NOON, sent_at=NOON - 2 * HOUR), False, id="nor is it the later sighting"
        ),
        pytest.param(
            KNOWN,
            replace(KNOWN, expires_at=NOON + HOUR, sent_at=NOON - 2 * MINUTE),
            True,
            id="a page that is just fresh",
        ),
        pytest.param(KNOWN, replace(KNOWN, expires_at=NOON + MINUTE, sent_at=NOON), False, id="one sent again"),
        pytest.param(
            KNOWN,
            replace(KNOWN, available_wallets=0, sent_at=KNOWN.sent_at - 1),
            False,
            id="of the same expiry the one sent before",
        ),
        pytest.param(
            SILENT, replace(SILENT, expires_at=SILENT.expires_at - 1, sent_at=NOON), True, id="fees that expire sooner"
        ),
        pytest.param(
            KNOWN,
            replace(KNOWN, available_wallets=0),
            True,
            id="of two of the same instant and expiry the one heard last counts",
        ),
        pytest.param(
            SILENT,
            replace(SILENT, expires_at=SILENT.expires_at - 1),
            True,
            id="of two of the same instant the one heard last counts, once neither is an answer",
        ),
        pytest.param(SILENT, replace(SILENT, sent_at=SILENT.sent_at - 1), False, id="sent a moment before"),
        pytest.param(KNOWN, replace(KNOWN, sent_at=NOON - DAY - 1), False, id="too long ago"),
        pytest.param(KNOWN, replace(KNOWN, sent_at=NOON + MINUTE + 1, expires_at=NOON + HOUR), False, id="the future"),
        pytest.param(replace(KNOWN, sent_at=NOON + HOUR), KNOWN, True, id="the known one is of the future"),
    ],
)
def test_an_announcement_is_news_if_it_is_the_later_one(
    known: Announcement, announcement: Announcement, *, expected: bool
) -> None:
    sightings = sightings_of(known)
    assert sightings.is_news(1, announcement, NOON) is expected
    sightings.note(1, announcement, NOON)
    assert [each.announcement for each in sightings] == [announcement if expected else known]


@pytest.mark.clause("S10")
@pytest.mark.parametrize(
    ("changed", "announcement", "expected"),
    [
        pytest.param({}, by("0zk1c", NOON - MINUTE), True, id="later than one of those that fill the set"),
        pytest.param({}, by("0zk1c", NOON - HOUR), True, id="as late as one of them"),
        pytest.param({}, by("0zk1c", NOON - HOUR - 1), False, id="before all of them"),
        pytest.param({"limit": 3}, by("0zk1c", NOON - HOUR - 1), True, id="while there is room"),
        pytest.param({"members": {"1": ("0zk1c",)}}, by("0zk1c", NOON - HOUR - 1), True, id="a configured member"),
        pytest.param(
            {"members": {"1": ("0zk1a", "0zk1b", "0zk1c")}},
            by("0zk1c", NOON - HOUR - 1),
            True,
            id="of configured members there may be more",
        ),
        pytest.param({"members": {"1": ("0zk1d",)}}, by("0zk1c", NOON), False, id="no configured member"),
        pytest.param({"limit": 3}, by("0zk1c", NOON - DAY), True, id="just not too long ago"),
        pytest.param({"limit": 3}, by("0zk1c", NOON - DAY - 1), False, id="too long ago"),
    ],
)
def test_a_broadcaster_is_monitored_if_there_is_room_for_it(
    changed: dict[str, Any], announcement: Announcement, *, expected: bool
) -> None:
    sightings = sightings_of(by("0zk1a", NOON), by("0zk1b", NOON - HOUR), **changed)
    sightings.note(1, announcement, NOON)
    assert (announcement in {each.announcement for each in sightings}) is expected


def test_what_was_seen_before_a_clock_was_set_back_takes_no_room() -> None:
    sightings = sightings_of(by("0zk1a", NOON + HOUR), by("0zk1b", NOON + HOUR))
    sightings.note(1, by("0zk1c", NOON), NOON)
    assert sightings.members(1, NOON) == Members(1, 1)


@pytest.mark.clause("S10")
def test_a_clock_that_is_wrong_for_a_moment_forgets_nobody() -> None:
    sightings = sightings_of(KNOWN, by("0zk1b", NOON - HOUR))
    for at, expected in ((NOON, (1, 2)), (NOON + 10 * DAY, (0, 0)), (NOON - 10 * DAY, (0, 0)), (NOON, (1, 2))):
        assert sightings.members(1, at) == Members(*expected)
