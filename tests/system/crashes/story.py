"""What the victims publish: a fixed tale over the real ledger, in lives that resume from what is stored.

It has all that a publication can have: new rows, a history, days of ended buckets, days that are forgotten.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lookout.config.tables import HistoryTable
from lookout.core.heads import Reading
from lookout.core.ledger import Ledger
from lookout.core.model import Blocks, Check, Failed, Found, Indexes, Members, Observation, Peers
from lookout.documents.document import Document, DocumentName, Pieces
from lookout.documents.reports import history_document, live_document
from lookout.state.codec import Differ, decode_state
from tests.builders import DAY, MINUTE, NOON, SECOND, a_plan

PLAN: Final = a_plan(chains=(1, 137), span=HistoryTable(retention_days=1).span())

# After the start of a life, when it publishes. Each life begins where the one before it ended.
LIVES: Final = (
    (0, 30 * SECOND, 5 * MINUTE, DAY, 6 * DAY),
    (MINUTE, MINUTE + 30 * SECOND, 6 * MINUTE),
)


class Publication(NamedTuple):
    documents: Mapping[DocumentName, Document]
    pieces: Pieces


class Stored(NamedTuple):
    """All that a store holds."""

    documents: Mapping[DocumentName, Document]
    pieces: Mapping[str, bytes]

    def after(self, publication: Publication) -> "Stored":
        """What it holds once this is stored."""
        documents, new = publication
        kept = {} if new.replace_all else dict(self.pieces)
        pieces = {name: piece for name, piece in (kept | new.put).items() if name not in new.delete}
        return Stored({**self.documents, **documents}, pieces)

    @property
    def mark(self) -> str:
        """Short, and another one for any other content: that of the documents, and that of the pieces."""
        documents = sorted((name, d.body, d.etag, d.generated_at) for name, d in self.documents.items())
        return f"{_hash(documents)}/{_hash(sorted(self.pieces.items()))}"


EMPTY: Final = Stored({}, {})


class MonitorLife:
    """One life of a monitor, without upstreams: what it publishes, and what it still has to because it failed to."""

    def __init__(self, pieces: Mapping[str, bytes]) -> None:
        self._ledger = Ledger(PLAN, decode_state(pieces))
        self._differ = Differ()
        self._history_is_due = True

    def start(self, at: int) -> None:
        self._ledger.start(at)

    def publication(self, number: int, at: int) -> Publication:
        """What is to be stored now; the even ones bring a history."""
        for chain_id in PLAN.chains:
            self._ledger.read_head(chain_id, Reading(at, 1_000 + number, at))
        for check in PLAN.checks():
            self._ledger.judge(Observation(check, at, _found(check, number)))
        self._ledger.publish(at)
        self._history_is_due |= number % 2 == 0
        documents: dict[DocumentName, Document] = {"live": live_document(self._ledger.report())}
        if self._history_is_due:
            documents["history"] = history_document(self._ledger.view())
        return Publication(documents, self._differ.find_changes(self._ledger.state()))

    def write_whole(self) -> None:
        """The next publication is everything."""
        self._differ = Differ()
        self._history_is_due = True

    def stored(self) -> None:
        self._differ.mark_stored()
        self._history_is_due = False


def life_begins_at(life: int) -> int:
    return NOON + sum(instants[-1] for instants in LIVES[:life])


def publications(stored: Stored = EMPTY, lives: tuple[int, ...] = (0, 1)) -> Iterator[tuple[Publication, Stored]]:
    """The tale if nothing ever fails, each publication with what the store holds after it."""
    for life in lives:
        monitor, begins_at = MonitorLife(stored.pieces), life_begins_at(life)
        monitor.start(begins_at)
        for number, wait in enumerate(LIVES[life]):
            publication = monitor.publication(number, begins_at + wait)
            monitor.stored()
            stored = stored.after(publication)
            yield publication, stored


def _found(check: Check, number: int) -> Found:
    """After the first publication some fail, so that there is a success to remember."""
    if number > 0 and check.chain_id == 137:
        return Failed("refused")
    match check.service:
        case "messaging":
            return Peers(number + 1)
        case "ppoi":
            return Indexes(number, number)
        case "broadcasters":
            return Members(1, 2)
        case _:
            return Blocks(990 + number)


def _hash(content: object) -> str:
    return hashlib.blake2b(repr(content).encode(), digest_size=6).hexdigest()
