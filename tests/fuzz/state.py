"""Damaged state in a store: refused in words, or a ledger goes on with it."""

import json
from random import Random
from typing import Final

from lookout.base.pieces import StateError
from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Blocks, Failed, Found, Indexes, Members, Observation, Peers
from lookout.documents.reports import history_document, live_document
from lookout.state.codec import PROGRESS, decode_state, encode_progress
from lookout.state.differ import all_pieces
from lookout_reader import History, HistoryRow, LiveReport, parse_history, parse_report
from tests.builders import BROADCASTERS, DAY, INDEXER, MESSAGING, MINUTE, NOON, PPOI, SECOND, a_plan
from tests.fuzz.fuzzer import Kind, Verdict, catch_errors, judge_alone
from tests.fuzz.mutation import change_bytes, change_json
from tests.integration.served import a_ledger

_PLAN: Final = a_plan(MESSAGING, INDEXER, BROADCASTERS, PPOI, chains=(1, 137))
_ANSWERS: Final[dict[str, Found]] = {
    "messaging": Peers(3),
    "ppoi": Indexes(5, 9),
    "broadcasters": Members(1, 2),
    "indexer": Blocks(7),
    "hosted-indexer": Blocks(8),
}


def pack(pieces: dict[str, bytes]) -> bytes:
    """A case: the pieces as JSON, each byte a character."""
    return json.dumps({name: piece.decode("latin-1") for name, piece in pieces.items()}).encode()


def unpack(case: bytes) -> dict[str, bytes]:
    try:
        found = json.loads(case)
    except (ValueError, RecursionError):
        return {}
    pieces = found.items() if isinstance(found, dict) else ()
    return {name: piece.encode("latin-1", "replace") for name, piece in pieces if isinstance(piece, str)}


@catch_errors
def judge_case(case: bytes) -> Verdict:
    try:
        state = decode_state(unpack(case))
    except StateError as error:
        return Verdict(str(error)[-60:])
    if state is None:
        return Verdict("none")
    try:
        ledger = Ledger(_PLAN, state)
    except ValueError as error:
        if "stored history has buckets of" in str(error):  # of another length, by another configuration
            return Verdict("buckets")
        raise
    return Verdict(_go_on(ledger))


def _go_on(ledger: Ledger) -> str:
    """Live through a day from some days after the state's."""
    begin_at = NOON + 2 * DAY
    ledger.start(begin_at)
    history = _publish(ledger, begin_at)  # with the rows as they were stored
    for at in (begin_at + SECOND, begin_at + 10 * MINUTE, begin_at + DAY, begin_at - MINUTE):
        ledger.read_head(1, Reading(at, 1_000 + at // 12_000 % 1_000_000, at))
        for check in _PLAN.monitored:
            ledger.judge(Observation(check, at, _ANSWERS[check.service]))
            ledger.judge(Observation(check, at, Failed("timeout")))
        history = _publish(ledger, at)
    return f"{history.length} {len({row.buckets for row in history.rows if isinstance(row, HistoryRow)})}"


def _publish(ledger: Ledger, at: int) -> History:
    """Both documents can be read throughout, and what is stored can be loaded again."""
    ledger.publish(at)
    live, history = (
        parse_report(live_document(ledger.report()).body),
        parse_history(history_document(ledger.view()).body),
    )
    assert isinstance(live, LiveReport)
    assert isinstance(history, History)
    assert not live.unreadable_rows
    assert not history.unreadable_rows
    decode_state(all_pieces(ledger.state()).put)
    return history


def _seeds() -> list[bytes]:
    ledger = a_ledger()
    whole = _without_seal(ledger)
    ledger.read_head(1, Reading(NOON + DAY, 100, NOON + DAY))
    ledger.read_head(137, Reading(NOON + DAY, 200, NOON + DAY))
    ledger.publish(NOON + DAY)
    return [pack(whole), pack(whole | _without_seal(ledger))]


def _without_seal(ledger: Ledger) -> dict[str, bytes]:
    """A seal would refuse every case before anything else of it is looked at."""
    return all_pieces(ledger.state()).put | {PROGRESS: encode_progress(ledger.state())}


def _change(chance: Random, case: bytes, other: bytes) -> bytes:
    pieces = unpack(case)
    if not pieces:
        return other
    spare = unpack(other) or pieces
    for _ in range(chance.choice((1, 1, 2, 4))):
        kind = chance.choice(sorted({name.partition("/")[0] for name in pieces}))  # or days would be most of them
        name = chance.choice([name for name in pieces if name.partition("/")[0] == kind])
        how = chance.random()
        if how < 0.75:
            pieces[name] = change_json(chance, pieces[name], chance.choice(list(spare.values())))
        elif how < 0.85:
            odd = change_bytes(chance, name.encode(), b"day/20000/ppoi/1")
            pieces[odd.decode("latin-1")] = pieces.pop(name)
        elif how < 0.95:
            pieces[name] = pieces[chance.choice(list(pieces))]
        elif len(pieces) > 1:
            del pieces[name]
    return pack(pieces)


STATE: Final = Kind("pieces of the state", _seeds, _change, lambda: judge_alone(judge_case))
