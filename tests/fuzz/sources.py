"""Hostile answers of upstreams: every parser gives what it may give, or says that the probe failed."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Final
from urllib.parse import urlencode

import msgspec

from lookout.core.heads import Reading
from lookout.core.model import LARGEST_METRIC, Blocks, Failed, Indexes, Members, MissingList, Nothing, Peers
from lookout.protocols.broadcasters.sightings import Seen, Sightings
from lookout.protocols.broadcasters.source import Message, Page
from lookout.protocols.broadcasters.table import BroadcastersTable
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.evm import Block
from tests.builders import NOON
from tests.contract.protocols.announcers import read_announcement
from tests.contract.protocols.recorded import FOLDER, PARSERS, recorded
from tests.fuzz.fuzzer import Judge, Kind, Verdict
from tests.fuzz.mutation import changed_json

Parser = Callable[[bytes], object]

_LONGEST_REASON: Final = 80
_LONGEST_S: Final = 5.0
_LARGEST: Final = 256 * 1024  # sources read some MiB at most, and one such case would take the time of thousands
_LAST_YEAR_MS: Final = 253_370_764_800_000
_BY_NAME: Final[dict[str, Parser]] = {name.replace(" ", "-"): parse for name, (parse, _) in PARSERS.items()}


def is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST_METRIC


def is_legal(outcome: object) -> bool:
    """Whether a parser may give this (R10)."""
    match outcome:
        case Blocks(number) | Peers(number):
            return is_count(number)
        case Indexes(number, other) | Members(number, other):
            return is_count(number) and is_count(other)
        case Block(height, block_at):
            return is_count(height) and is_count(block_at) and Reading(NOON, height, block_at).block_at < _LAST_YEAR_MS
        case Nothing() | MissingList():
            return True
        case Failed(reason):
            return 0 < len(reason) <= _LONGEST_REASON and reason.isprintable()
        case Page(messages, cursor):
            return (cursor is None or bool(urlencode({"cursor": cursor}))) and is_legal(messages)
        case tuple():
            return all(isinstance(message, Message) for message in outcome) and _can_be_counted(outcome)
        case dict():
            return all(is_legal(found) for found in outcome.values())
        case _:
            return is_count(outcome)


def _can_be_counted(messages: Sequence[Message]) -> bool:
    """Whether what is in the messages leads to a count of broadcasters, and can be stored."""
    settings = BroadcastersTable("http://127.0.0.1", chains=(1,))
    sightings = Sightings(settings)
    for message in messages[:50]:
        announcement = read_announcement(message.payload, message.sent_at)
        if announcement is not None:
            sightings.note(1, announcement, NOON)
    msgspec.json.encode(Seen(tuple(sightings), {1: NOON}))
    members = sightings.members(1, NOON)
    return is_legal(members) and members.responding <= members.monitored


def judged(parsers: dict[str, Parser], case: bytes) -> Verdict:
    """A case is a parser's name, a line end, and an answer."""
    name, _, body = case.partition(b"\n")
    parse = parsers.get(name.decode("latin-1"))
    if parse is None:
        return Verdict("no parser")
    began = time.thread_time()
    try:
        found = parse(body)
        is_fine = is_legal(found)
    except ProbeFailed as failure:
        found, is_fine = failure.reason, is_legal(Failed(failure.reason))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what is looked for
        return Verdict("died", f"the parser {name.decode()} died of {type(error).__name__}: {str(error)[:100]}")
    if not is_fine:
        return Verdict("illegal", f"the parser {name.decode()} gave {str(found)[:100]}")
    if time.thread_time() - began > _LONGEST_S:
        return Verdict("slow", f"the parser {name.decode()} took {time.thread_time() - began:.1f} s")
    return Verdict(f"{name.decode()} {found if isinstance(found, str) else type(found).__name__}")


def _seeds() -> list[bytes]:
    own = [name.replace(" ", "-").encode() + b"\n" + recorded(file) for name, (_, file) in PARSERS.items()]
    others = [
        name.encode() + b"\n" + file.read_bytes()
        for name, start in (("squid", "squid"), ("subgraph", "subgraph"), ("known-peers", "waku-peers"))
        for file in sorted(FOLDER.glob(f"{start}*.json"))
    ]
    return own + others


def _changed(chance: Random, case: bytes, other: bytes) -> bytes:
    name, _, body = case.partition(b"\n")
    made = name + b"\n" + changed_json(chance, body, other.partition(b"\n")[2])
    return made if len(made) <= _LARGEST else case


@contextmanager
def _judging() -> Iterator[Judge]:
    yield Judge(lambda cases: [judged(_BY_NAME, case) for case in cases])


SOURCES: Final = Kind("answers of upstreams", _seeds, _changed, _judging)
