"""Statuses and reasons in sentences, and notes on what the data does not say (C12)."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from lookout_reader.statuses import BY_WORD, EffectiveStatus

Reason = Literal[
    "synced",
    "behind",
    "responding",
    "partial-coverage",
    "unreachable",
    "not-configured",
    "no-observation",
    "incompatible-reference",
    "incomplete",
    "inconsistent",
    "not-everywhere",
]

REASON_TEXTS: Final[dict[str, str]] = {
    "synced": "It is up to date.",
    "behind": "It is behind where it should be.",
    "responding": "Everything that was asked has answered.",
    "partial-coverage": "Some were heard, others were not.",
    "unreachable": "It could not be reached, or its answer could not be understood.",
    "not-configured": "The operator has set up nothing to watch here.",
    "no-observation": "Nothing was seen yet, or it holds nothing for this chain.",
    "incompatible-reference": "It answered, but there was nothing safe to compare its answer with.",
    "incomplete": "It is up to date, but its list has a gap.",
    "inconsistent": "It is up to date, but its transactions differ from the reference.",
    "not-everywhere": "Some places reach it, others do not.",
}


OTHERS: Final = "others"


@dataclass(frozen=True, slots=True)
class Note:
    """A note to show beside the data; ``services`` are its services, None for all."""

    id: str
    services: tuple[str, ...] | None
    text: str


NOTES: Final = (
    Note("one-view", None, "This is what one monitor sees from one place. It is not an official status."),
    Note("not-a-signal", None, "It is not a signal that it is safe to transact."),
    Note("history", None, "The history does not say what is up now."),
    Note(
        "partial",
        ("broadcasters",),
        "Limited broadcasters are a partial reading: some were not heard, others may work.",
    ),
    Note("peers", ("messaging",), "Peers are connections. They do not prove that a message is delivered."),
    Note(
        "wallet-sync",
        ("indexer", "hosted-indexer"),
        "Whether an indexer is up to date does not say whether your wallet is synced.",
    ),
    Note("proofs", ("ppoi",), "An up-to-date node says nothing about your wallet's proofs, compliance or balance."),
    Note(OTHERS, ("ppoi", "hosted-indexer"), "This is run by other people, not by the operator of the monitor."),
)


def status_text(effective: EffectiveStatus) -> str:
    """An effective status in a sentence."""
    return BY_WORD[effective].sentence


def reason_text(reason: str | None) -> str | None:
    """A reason in a sentence; None for an unknown reason: then the status alone counts (C5)."""
    return None if reason is None else REASON_TEXTS.get(reason)


def agreement_text(views: int | None, agreeing: int | None) -> str | None:
    """How many places see the published status, in a sentence; None if none does, or the row is watched from one."""
    return f"{agreeing} of {views} places see this." if views and agreeing else None


def notes_for(service: str, run_by_others: bool | None = None, places: int = 1) -> tuple[Note, ...]:
    """The notes to show beside a service's row, the general ones first (C12). ``run_by_others`` and the number of
    ``places`` come from the operator (``About``); without the first, it is as at the launch."""
    return tuple(_count_places(note, places) for note in NOTES if _is_about(note, service, run_by_others))


def _count_places(note: Note, places: int) -> Note:
    return note if places < 2 else replace(note, text=note.text.replace("from one place", f"from {places} places"))


def _is_about(note: Note, service: str, run_by_others: bool | None) -> bool:
    if note.services is None:
        return True
    return run_by_others if note.id == OTHERS and run_by_others is not None else service in note.services
