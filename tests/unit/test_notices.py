"""Notes and silences: what an operator may declare, what they cover, and for how long."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from lookout.base.instants import parse_duration
from lookout.core.model import Check
from lookout.core.notices import (
    MOST,
    PAST_DAYS,
    Notice,
    NoticeDraft,
    NoticeError,
    Notices,
    Watched,
    add_notice,
    end_notice,
)
from lookout.core.services import SERVICES, all_checks
from lookout.public.about import Description, describe_note, scope_text, time_text
from lookout.state.codec import decode_notices, encode_notices
from lookout.state.errors import StateError
from tests.builders import DAY, HOUR, INDEXER, MESSAGING, MINUTE, NOON, PPOI
from tests.cases import cases
from tests.descriptions import a_description

CHAINS = {1: "Ethereum", 137: "Polygon", 10: "Twin", 20: "Twin"}
WATCHED = Watched(SERVICES.names, CHAINS, frozenset(all_checks(CHAINS)))
NOTE = NoticeDraft("note", "Planned maintenance")
SILENCE = NoticeDraft("silence", for_="2h")
NONE = Notices()
NOT_ONE_LINE = "has to be one line that can be printed, without control characters"


def add(draft: NoticeDraft, notices: Notices = NONE, at: int = NOON) -> Notice:
    return add_notice(notices, draft, at, WATCHED)[1]


def declared(*drafts: NoticeDraft) -> Notices:
    notices = Notices()
    for draft in drafts:
        notices, _ = add_notice(notices, draft, NOON, WATCHED)
    return notices


@pytest.mark.parametrize(
    ("draft", "problems"),
    [
        *cases("notices", "what is wrong with a notice is said all at once"),
        pytest.param(
            {"kind": "note", "text": "a\ud800b"}, [f"text: {NOT_ONE_LINE}"], id="a note with half a character"
        ),
    ],
)
def test_what_is_wrong_with_a_notice_is_said_all_at_once(draft: dict[str, Any], problems: list[str]) -> None:
    with pytest.raises(NoticeError) as refused:
        add(msgspec.convert(draft, NoticeDraft))
    assert list(map(str, refused.value.problems)) == problems


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("14\u00a0h: 維護\u3000開始", id="no-break and ideographic spaces"),
        pytest.param("می\u200cبینیم", id="a zero-width non-joiner, as Persian has it"),
        pytest.param("👩\u200d🔧 at work", id="a zero-width joiner, as emoji have it"),
        pytest.param("الصيانة (RPC)\u200f", id="a mark of direction"),
    ],
)
def test_a_note_may_have_what_its_language_needs(text: str) -> None:
    assert add(replace(NOTE, text=text)).text == text


def test_where_no_chain_is_configured_that_is_said() -> None:
    with pytest.raises(NoticeError, match=r"^chain: there is no chain '1'; there are none$"):
        add_notice(Notices(), replace(SILENCE, chains=("1",)), NOON, replace(WATCHED, chains={}))


@pytest.mark.parametrize(
    ("draft", "from_at", "until_at"),
    [
        pytest.param(NOTE, NOON, None, id="from now on, until it is ended"),
        pytest.param(SILENCE, NOON, NOON + 2 * HOUR, id="for some time from now on"),
        pytest.param(
            replace(SILENCE, from_="2026-11-05T14:00Z"),
            NOON + 2 * HOUR,
            NOON + 4 * HOUR,
            id="for some time from then on",
        ),
        pytest.param(
            replace(NOTE, from_="2026-11-05T11:00:30Z", until="2026-11-05T13:00:00Z"),
            NOON - HOUR + 30_000,
            NOON + HOUR,
            id="from before now, to the second",
        ),
        pytest.param(replace(SILENCE, for_="30d"), NOON, NOON + 30 * DAY, id="for as long as is allowed"),
    ],
)
def test_a_notice_begins_now_and_lasts_as_it_says(draft: NoticeDraft, from_at: int, until_at: int | None) -> None:
    added = add(draft, at=NOON + 999)  # what is shown, to the second, is what holds
    assert (added.from_at, added.until_at, added.added_at) == (from_at, until_at, NOON + 999)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [("90s", 90_000), ("30min", 30 * MINUTE), ("30m", 30 * MINUTE), ("2h", 2 * HOUR), ("1 d", DAY)],
)
def test_a_duration_is_a_number_of_one_unit(text: str, duration_ms: int) -> None:
    assert parse_duration(text) == duration_ms


@pytest.mark.parametrize("text", ["", "0h", "h", "-2h", "1.5h", "2H", "2w", "1h30m", "99999999s", "\u0662h", "2  h"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration like 30min, 2h or 1d"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("services", "chains", "covered"),
    [
        pytest.param((), (), {MESSAGING, INDEXER, PPOI, Check("indexer", 137)}, id="without a scope it is about all"),
        pytest.param(("indexer",), (), {INDEXER, Check("indexer", 137)}, id="a service on every chain"),
        pytest.param((), ("ethereum",), {INDEXER, PPOI}, id="a chain by its name, without what has no chain"),
        pytest.param(("indexer", "ppoi"), ("137",), {Check("indexer", 137)}, id="services on a chain by its id"),
        pytest.param(("messaging",), (), {MESSAGING}, id="what has no chain"),
    ],
)
def test_a_silence_covers_its_services_on_its_chains(
    services: tuple[str, ...], chains: tuple[str, ...], covered: set[Check]
) -> None:
    notices = declared(replace(SILENCE, services=services, chains=chains))
    checks = (MESSAGING, INDEXER, PPOI, Check("indexer", 137))
    assert notices.find_silenced(NOON, checks) == covered


@pytest.mark.parametrize(
    ("draft", "is_silent"),
    [
        pytest.param(SILENCE, [True, True, False], id="a silence from its beginning to before its end"),
        pytest.param(NOTE, [False] * 3, id="a note never"),
        pytest.param(replace(NOTE, for_="2h", silences=True), [True, True, False], id="a note that silences"),
    ],
)
def test_alerts_are_held_back_while_it_lasts(draft: NoticeDraft, is_silent: list[bool]) -> None:
    notices = declared(draft)
    instants = (NOON, NOON + 2 * HOUR - 1, NOON + 2 * HOUR)
    assert [bool(notices.find_silenced(at, [INDEXER])) for at in instants] == is_silent


def test_a_silence_that_began_at_once_goes_on_if_the_clock_is_set_back() -> None:
    assert declared(replace(SILENCE, from_=None)).find_silenced(NOON - HOUR, [INDEXER])


def test_what_is_not_over_is_listed_the_newest_first_also_if_it_is_yet_to_come() -> None:
    later = replace(NOTE, from_="2026-11-06T12:00Z", for_="1h")
    notices = declared(NOTE, SILENCE, later, replace(NOTE, for_="1h"))
    assert [each.id for each in notices.list_valid(NOON)] == ["4", "3", "2", "1"]
    assert [each.id for each in notices.list_valid(NOON, "note")] == ["4", "3", "1"]
    assert [each.id for each in notices.list_valid(NOON + HOUR, "note")] == ["3", "1"]


def test_the_next_notice_drops_a_silence_that_is_over_and_a_clock_that_is_ahead_ends_nothing() -> None:
    notices = declared(SILENCE)
    assert notices.list_valid(NOON + DAY) == ()
    assert notices.list_valid(NOON) != ()
    after, added = add_notice(notices, NOTE, NOON + DAY, WATCHED)
    assert after.declared == (added,)
    assert added.id == "2"


def test_there_are_so_many_of_each_kind_and_no_number_comes_twice() -> None:
    notices = declared(*[NOTE] * MOST)
    with pytest.raises(NoticeError, match=f"^note: there are {MOST} already; end one first$"):
        add(NOTE, notices)
    assert add(SILENCE, notices).id == str(MOST + 1)
    notices, ended = end_notice(notices, "note", "7", NOON)
    assert ended.id == "7"
    assert add(NOTE, notices).id == str(MOST + 1)


@pytest.mark.parametrize(
    ("draft", "ended_at", "past"),
    [
        pytest.param(NOTE, NOON + 10 * MINUTE, ["1"], id="a note that was there for ten minutes stays as a past one"),
        pytest.param(replace(NOTE, silences=True, for_="2h"), NOON + HOUR, ["1"], id="a note that silenced alerts"),
        pytest.param(NOTE, NOON + 9 * MINUTE, [], id="a note that was ended sooner was a mistake"),
        pytest.param(
            replace(NOTE, from_="2026-11-05T13:00Z"), NOON + 30 * MINUTE, [], id="a note that never began was one too"
        ),
        pytest.param(SILENCE, NOON + HOUR, [], id="a silence was never public"),
    ],
)
def test_what_stays_of_a_notice_that_the_operator_ends(draft: NoticeDraft, ended_at: int, past: list[str]) -> None:
    notices, ended = end_notice(declared(draft), draft.kind, "1", ended_at)
    assert ended.until_at == ended_at
    assert notices.list_valid(ended_at) == ()
    assert [note.id for note in notices.list_past_notes(ended_at)] == past
    assert notices.find_silenced(ended_at - 1, WATCHED.checks) == frozenset(), "nor if the clock is set back"
    later, _ = add_notice(notices, NOTE, ended_at + DAY, WATCHED)
    assert [note.id for note in later.list_past_notes(ended_at + DAY)] == past
    assert later.list_past_notes(ended_at + PAST_DAYS * DAY) == ()


def test_past_notes_are_no_more_than_there_may_be_at_once() -> None:
    notices = NONE
    for number in range(1, MOST + 3):
        notices, _ = add_notice(notices, replace(NOTE, for_="1h"), NOON + number * DAY // 8, WATCHED)
    past = notices.list_past_notes(NOON + 10 * DAY)
    assert [note.id for note in past] == [str(number) for number in range(MOST + 2, 2, -1)]


@pytest.mark.parametrize(
    ("kind", "notice_id", "problem"),
    [
        ("note", "7", "id: there is no note '7'; the ids are 2, 1"),
        ("silence", "1", "id: there is no silence '1'; it is a note: lookout note end 1"),
        ("silence", "\x1b" * 100, f"id: there is no silence {chr(27) * 17 + '...'!r}; the ids are 3"),
    ],
)
def test_to_end_what_is_not_there_says_what_is(kind: str, notice_id: str, problem: str) -> None:
    with pytest.raises(NoticeError) as refused:
        end_notice(declared(NOTE, NOTE, SILENCE), "note" if kind == "note" else "silence", notice_id, NOON)
    assert str(refused.value) == problem


def test_to_end_one_where_there_is_none_says_so() -> None:
    with pytest.raises(NoticeError, match=r"^id: there is no note '1'; there is none at all$"):
        end_notice(declared(replace(NOTE, for_="1h")), "note", "1", NOON + HOUR)


def test_what_is_stored_is_read_again_and_nothing_is_stored_of_nothing() -> None:
    assert encode_notices(Notices()) == {}
    assert decode_notices({"alerts": b"somebody else's"}) == Notices()
    notices = declared(NOTE, replace(SILENCE, services=("indexer",), chains=("Polygon",), text="why"))
    assert decode_notices(encode_notices(notices)) == notices


@pytest.mark.parametrize(
    "damage", [b'"from_at":-1', b'"from_at":999999999999999999', b'"from_at":"', b"[" * 100_000], ids=str
)
def test_what_is_damaged_is_not_taken_for_notices(damage: bytes) -> None:
    ((name, piece),) = encode_notices(declared(NOTE)).items()
    broken = piece.replace(f'"from_at":{NOON}'.encode(), damage)
    assert broken != piece
    with pytest.raises(StateError, match=r"^the stored document notices cannot be read: "):
        decode_notices({name: broken})


@pytest.mark.parametrize(
    ("services", "chains", "text"),
    [
        ((), (), "everything"),
        (("indexer", "ppoi"), (), "indexer, ppoi"),
        ((), ("Polygon", "Base"), "all services on Polygon, Base"),
        (("indexer",), ("Polygon",), "indexer on Polygon"),
    ],
)
def test_a_scope_in_words(services: tuple[str, ...], chains: tuple[str, ...], text: str) -> None:
    assert scope_text(services, chains) == text


@pytest.mark.parametrize(
    ("until_at", "text"),
    [
        (None, "from 2026-11-05 12:00 UTC on"),
        (NOON + 2 * HOUR, "from 2026-11-05 12:00 to 14:00 UTC"),
        (NOON + 30_000, "from 2026-11-05 12:00 to 12:00:30 UTC"),
        (NOON + DAY, "from 2026-11-05 12:00 to 2026-11-06 12:00 UTC"),
    ],
)
def test_a_time_in_words(until_at: int | None, text: str) -> None:
    assert time_text(NOON, until_at) == text


def test_a_draft_is_read_strictly() -> None:
    read = msgspec.json.decode(
        b'{"kind":"note","text":"t","chains":[137,"Base"],"from":null,"for":"2h"}', type=NoticeDraft
    )
    assert (read.chains, read.for_, read.from_) == ((137, "Base"), "2h", None)
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"kind":"note","text":"t","silence":true}', type=NoticeDraft)


def test_a_description_that_an_earlier_version_stored_has_no_notes() -> None:
    stored = b'{"protocol":"p","chains":[],"services":[],"title":"t","notes":[]}'
    for each in (stored, stored.replace(b',"notes":[]', b"")):
        assert msgspec.json.decode(each, type=Description).notes == []
    noted = replace(a_description(), notes=[describe_note(add(NOTE)), describe_note(add(replace(NOTE, for_="1h")))])
    followed = a_description().follow_monitor(msgspec.json.decode(noted.encode(), type=Description))
    assert followed.notes == noted.notes
    old_at = NOON + HOUR + PAST_DAYS * DAY
    assert [len(followed.drop_old_notes(old_at + late).notes) for late in (-1, 0)] == [2, 1]
