"""The running hash along a list: what is a break, what proves nothing, and when it ends (S20)."""

import json
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from lookout.core.model import ListEntry
from lookout.features.lists.rules.links import (
    Links,
    Read,
    choose_reads,
    confirmed_breaks,
    describe_breaks,
    is_hurried,
    make_hash,
    resume,
    take_answer,
)
from lookout.protocols.lists import SQUID_LINKS, HashedList, parse_entries
from lookout.protocols.squid import SquidTable
from tests.builders import NOON

pytestmark = pytest.mark.clause("S20")

ROWS = json.loads((Path(__file__).parent.parent / "data/vectors/links-ethereum.json").read_text())["rows"]
MINUTE_MS = 60_000
DAY_MS = 86_400_000
FINAL = 10**9
EMPTY = Links(subject="a")


def a_list(length: int) -> list[ListEntry]:
    """A whole list: entry n is in block 10 * n."""
    entries, last = [], f"0x{0:064x}"
    for number in range(length):
        value = f"0x{number + 1:064x}"
        last = make_hash(last, value)
        entries.append(ListEntry(f"{number:04d}", 10 * number, value, last, f"0x{number:064x}"))
    return entries


def without(entries: Sequence[ListEntry], *numbers: int) -> list[ListEntry]:
    return [entry for number, entry in enumerate(entries) if number not in numbers]


class World:
    """An indexer with a list, read as the monitor does, minute by minute."""

    def __init__(self, entries: Sequence[ListEntry], page: int = 8, final: int = FINAL) -> None:
        self.entries = list(entries)
        self.page = page
        self.final = final
        self.now = NOON
        self.links = EMPTY
        self.reads: list[Read] = []

    def answer(self, read: Read) -> list[ListEntry]:
        return [entry for entry in self.entries if entry.id >= read.from_id][: self.page]

    def look(self) -> None:
        for read in choose_reads(self.links, self.now):
            self.reads.append(read)
            self.links = take_answer(self.links, read, self.answer(read), self.now, self.final)

    def run(self, minutes: int) -> None:
        for _ in range(minutes):
            self.look()
            while is_hurried(self.links):
                self.look()
            self.now += MINUTE_MS

    @property
    def places(self) -> list[tuple[str, str]]:
        return [(found.first.id, found.second.id) for found in confirmed_breaks(self.links)]


def test_every_link_of_a_real_list_holds_and_each_first_row_that_is_dropped_of_several_is_one_break() -> None:
    body = msgspec.json.encode({"data": {"transactions": ROWS}})
    table = SquidTable(chain=1, kind="squid", url="http://squid.example/graphql")
    entries = parse_entries(body, HashedList(SQUID_LINKS, table.url, table))
    whole = take_answer(EMPTY, Read("sweep", ""), entries, NOON, FINAL)
    assert (len(entries), whole.breaks, whole.has_held) == (242, (), True)
    firsts = [
        number
        for number, (before, entry) in enumerate(pairwise(entries), 1)
        if before.transaction != entry.transaction and entry.transaction == entries[(number + 1) % 242].transaction
    ]
    assert len(firsts) == 33
    for number in firsts:
        lacking = take_answer(EMPTY, Read("sweep", ""), without(entries, number), NOON, FINAL)
        assert [(found.first, found.second) for found in lacking.breaks] == [(entries[number - 1], entries[number + 1])]


@pytest.mark.parametrize(
    ("previous", "value", "expected"),
    [
        pytest.param(
            "0x099cd3ebcadaf6ff470d16bc0186fb5f26cd4103e9970effc9b6679478e11c72",
            "0x26d7d0d235dc1849e9794061ebc74e9ea211b8b5004081d26c7d086bdd3c0c35",
            "0x63b79987230ed89bcfbaf94c72c42515f116057e2c2f5d19c5b47d094858e874",
            id="as wallets make it",
        )
    ],
)
def test_the_hash_is_keccak_256_of_both(previous: str, value: str, expected: str) -> None:
    assert make_hash(previous, value) == expected


def test_a_break_is_reported_a_minute_after_it_was_first_seen_and_ends_with_the_repair() -> None:
    whole = a_list(12)
    world = World(whole, page=100)
    world.run(3)
    assert (world.places, world.links.swept_at) == ([], NOON)
    world.entries = without(whole, 7)
    world.links = replace(world.links, cursor="", sweep_at=world.now - DAY_MS)  # a day later
    world.run(1)
    assert (world.places, len(world.links.breaks)) == ([], 1)
    world.run(1)
    assert world.places == [("0006", "0008")]
    assert describe_breaks(world.links) == (
        f"1 break of the running hash between the entry 0006 (block 60, transaction {whole[6].transaction}, hash "
        f"{whole[6].hash}) and the entry 0008 (block 80, transaction {whole[8].transaction}, hash {whole[8].hash})"
    )
    world.entries = whole
    world.run(1)
    assert (world.places, world.links.breaks) == ([], ())


def test_what_is_new_is_read_every_minute_and_all_of_it_once_a_day() -> None:
    world = World(a_list(12))
    world.run(1)
    assert [read.from_id for read in world.reads] == ["", "0002", "0004", "0006"]
    world.reads.clear()
    world.run(24 * 60)
    newest = [read for read in world.reads if read.what == "newest"]
    sweep = [read.from_id for read in world.reads if read.what == "sweep"]
    assert (len(newest), sweep) == (24 * 60, ["", "0002", "0004", "0006"])
    world.reads.clear()
    world.entries = without(a_list(14), 12)
    world.run(2)
    assert world.places == [("0011", "0013")]


@pytest.mark.parametrize(
    ("change", "places"),
    [
        pytest.param(lambda whole: without(whole, 5, 8), [("0004", "0006"), ("0007", "0009")], id="two places"),
        pytest.param(lambda whole: without(whole, 5, 6, 7), [("0004", "0008")], id="neighbours that are lost are one"),
        pytest.param(
            lambda whole: [*whole[:5], replace(whole[5], value=whole[0].value), *whole[6:]],
            [("0004", "0005")],
            id="a wrong entry is one",
        ),
        pytest.param(
            lambda whole: [replace(whole[0], hash=f"0x{1:064x}"), *whole[1:]], [("0000", "0001")], id="the second entry"
        ),
        pytest.param(
            lambda whole: [replace(whole[0], value=whole[3].value), *whole[1:]], [], id="the first is not judged"
        ),
    ],
)
def test_one_break_is_one_break(
    change: Callable[[list[ListEntry]], list[ListEntry]], places: list[tuple[str, str]]
) -> None:
    world = World(change(a_list(12)), page=100)
    world.run(3)
    assert world.places == places


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(World(without(a_list(12), 11), final=99), id="what is not final"),
        pytest.param(World(without([*a_list(9), *a_list(20)[12:]], 0), final=80), id="a hole above what is final"),
        pytest.param(World([replace(entry, hash=None) for entry in a_list(9)]), id="entries without a hash"),
        pytest.param(World([replace(entry, value=None) for entry in a_list(9)]), id="entries without a value"),
        pytest.param(World([replace(entry, hash=entry.value) for entry in a_list(9)]), id="a hash of another kind"),
        pytest.param(World(a_list(9)[::-1], page=9), id="another order"),
        pytest.param(World([]), id="an empty list"),
        pytest.param(
            World([replace(entry, block=FINAL + 1) if entry.id == "0005" else entry for entry in a_list(9)]),
            id="neighbours of an entry in between that is not final",
        ),
    ],
)
def test_what_proves_nothing(world: World) -> None:
    world.run(5)
    assert world.links.breaks == ()
    has_fault = bool(world.links.unsupported)
    assert has_fault == (not world.links.has_held and bool(world.entries))


def test_an_entry_without_its_fields_in_between_is_named_and_what_is_around_it_is_judged() -> None:
    whole = a_list(12)
    world = World([*whole[:4], replace(whole[4], hash=None), *without(whole, 9)[5:]], page=100)
    world.run(1)
    assert world.links.unsupported == "the entry 0004 has no hash or no value"
    world.run(2)
    assert world.places == [("0008", "0010")]
    world.entries = [*whole[:8], replace(whole[8], hash=None), *whole[9:]]
    world.run(2)
    assert world.places == [("0008", "0010")]  # its place cannot be judged now


def test_a_break_ends_at_the_next_reading_of_all_entries_if_the_list_begins_behind_it() -> None:
    whole = a_list(40)
    world = World(without(whole, 5), page=100)
    world.run(3)
    world.entries = whole[6:]
    world.run(23 * 60)
    assert (world.places, world.links.breaks) == ([], ())


def test_a_list_that_becomes_shorter_while_it_is_read_first_is_read_from_its_beginning() -> None:
    world = World(a_list(30))
    for _ in range(3):
        world.look()
    assert world.links.cursor == "0006"
    world.entries = a_list(4)
    world.look()
    assert (world.links.cursor, world.links.swept_at) == ("", None)
    world.run(1)
    assert (world.links.newest_id, world.links.breaks) == ("0003", ())


@pytest.mark.clause("M7")
def test_a_break_survives_a_restart_and_a_suspicion_waits_again() -> None:
    world = World(without(a_list(12), 5), page=100)
    world.run(3)
    world.entries = without(world.entries, 8)
    world.links = replace(world.links, cursor="", sweep_at=NOON - DAY_MS)
    world.look()
    suspected = world.links.breaks[1]
    stored = msgspec.json.decode(msgspec.json.encode(world.links), type=Links)
    assert stored == world.links
    later = resume(stored, NOON - DAY_MS)
    assert [found.is_confirmed for found in later.breaks] == [True, False]
    assert (later.sweep_at, later.swept_at, later.breaks[1].seen_at) == (NOON - DAY_MS, NOON - DAY_MS, NOON - DAY_MS)
    assert resume(stored, suspected.seen_at + 5).breaks[1].seen_at == suspected.seen_at + 5
    assert resume(EMPTY, NOON) == EMPTY


def test_ids_that_are_numbers_are_ordered_as_numbers() -> None:
    entries = [replace(entry, id=str(number + 8)) for number, entry in enumerate(a_list(5))]
    links = take_answer(EMPTY, Read("sweep", ""), without(entries, 2), NOON, FINAL)
    assert [(found.first.id, found.second.id) for found in links.breaks] == [("9", "11")]
    again = take_answer(links, Read("again", "8", "11"), without(entries, 2), NOON + MINUTE_MS, FINAL)
    assert len(confirmed_breaks(again)) == 1


def test_of_many_breaks_two_are_named() -> None:
    world = World(without(a_list(20), 3, 6, 9, 12), page=100)
    world.run(3)
    described = describe_breaks(world.links)
    assert described.startswith("4 breaks of the running hash between the entry 0002 (")
    assert described.endswith(" and 2 more")
    assert describe_breaks(EMPTY) == ""


def test_a_thousand_breaks_in_a_long_answer_take_no_time() -> None:
    """As long as an answer may be; most entries of it lack their fields, and the last thousand break."""
    entries = [
        replace(entry, hash=None, value=None) if number < 6_600 else replace(entry, hash=entry.value)
        for number, entry in enumerate(a_list(7_700))
    ]
    links, began_s = replace(EMPTY, has_held=True), time.process_time()
    for at in (NOON, NOON + MINUTE_MS):
        links = take_answer(links, Read("sweep", ""), entries, at, FINAL)
    assert len(confirmed_breaks(links)) == 1_000
    assert [read.what for read in choose_reads(links, NOON + 2 * MINUTE_MS)].count("again") == 20
    assert time.process_time() - began_s < 2


@pytest.mark.parametrize("left", [[], a_list(12)[:4]], ids=["empty", "shorter"])
def test_while_a_list_is_rebuilt_nothing_begins_or_ends(left: list[ListEntry]) -> None:
    world = World(without(a_list(12), 5))
    world.run(3)
    assert world.places == [("0004", "0006")]
    world.entries = left
    world.run(30)
    assert (world.places, world.links.is_shorter) == ([("0004", "0006")], True)
    world.entries = a_list(12)
    world.run(1)
    assert (world.places, world.links.is_shorter) == ([], False)
