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
    "not-everywhere": "Places see it differently.",
}

#: What is said of an overview (``headline_of``); a text with plurals is chosen by ``count``. The page has them in more
#: languages.
OVERVIEW_TEXTS: Final[dict[str, str | dict[str, str]]] = {
    "list": "{one}, {other}",
    "list.last": "{one} and {other}",
    "list.long": "{one}; {other}",
    "activity.send": "sending",
    "activity.balances": "balances",
    "activity.proofs": "proofs",
    "may.fail": "may fail",
    "may.slow": "may be slow",
    "may.late": "may be late",
    "may.stop": "may stop",
    "may.wrong": "may be wrong",
    "may.refused": "may be refused",
    "may.unknown": "not known",
    "may.well": "no problem seen",
    "may.unwatched": "not watched",
    "effect.send.fail": "sending may fail",
    "effect.send.slow": "sending may be slow",
    "effect.balances.late": "balances may be late",
    "effect.balances.stop": "syncing may stop",
    "effect.balances.wrong": "past transactions may be wrong",
    "effect.proofs.late": "proofs may be late",
    "effect.proofs.refused": "proofs may be refused",
    "effect.own": "{service}: {effect}",
    "effect.unknown": "nothing is known about {what}",
    "on": "{what} on {networks}",
    "networks.all": {"one": "the {count} network", "other": "all {count} networks"},
    "networks.part": {"one": "{count} of {all} networks", "other": "{count} of {all} networks"},
    "also": "Also: {problems}",
    "problems.more": {"one": "{count} more problem", "other": "{count} more problems"},
    "since": "since about {since}",
    "since.before": "since {since} or earlier",
    "since.first": "the first since about {since}",
    "end.none": "no end announced",
    "end.until": "announced until {until}",
    "band.nothing": "Nothing is known right now",
    "band.none": "Nothing is watched",
    "band.none.main": "No mainnet is watched",
    "band.doubted": "No problem when last seen",
    "band.silent": "None of the watched services answers",
    "band.stale": "Nothing is known now: the last reading is from {since}",
    "band.well": "No problem seen with {what}",
    "band.others": {"one": "No problem seen on the other network", "other": "No problem seen on the other networks"},
    "cause.offline": "This device is offline: that says nothing about the networks",
    "cause.offline.short": "This device is offline",
    "cause.silent": "No answer: your connection or the monitor's server, not the networks",
    "cause.silent.short": "No answer",
    "cause.asleep": "This page was asleep and is asking for a new report",
    "cause.asleep.short": "Asking for a new report",
    "cause.stopped": "No new report for {seconds} s: this is the monitor, not the networks",
    "cause.stopped.since": "No new report since {since}: this is the monitor, not the networks",
    "cause.stopped.short": "No new report",
    "cause.none": "The server has no report yet",
    "cause.none.short": "No report yet",
    "cause.busy": "The server refuses to answer: it was asked too often",
    "cause.busy.short": "No answer",
    "cause.unreadable": "The server's report cannot be read",
    "cause.unreadable.short": "No readable report",
    "cause.refused": "The server's answer is not a report",
    "cause.refused.short": "No report",
    "trouble.ahead": "The clock here is ahead of the server's: old readings cannot be distinguished from new ones.",
    "trouble.behind": "The clock here is behind the server's: old readings cannot be distinguished from new ones.",
    "trouble.undated": "The report does not say when it was made.",
    "trouble.future": "The report is dated in the future: the clock here or the monitor's is wrong.",
    "trouble.own": "The cause may be the services or the monitor's own connection: the monitor cannot tell which.",
    "trouble.rows": "Rows of the report cannot be read.",
    "advice.transactions": "Before you send again, look for the transaction in the wallet or on a block explorer: it "
    "may have gone through.",
    "advice.stop": "Rescanning or reinstalling the wallet does not help.",
    "advice.proofs": "If a proof takes long, look again later.",
    "advice.nothing": "This says nothing about your wallet; look again later.",
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
    Note("peers", ("messaging",), "Connected peers do not prove that a message is delivered."),
    Note(
        "wallet-sync",
        ("indexer", "hosted-indexer"),
        "An indexer that is up to date does not say whether your wallet is synced.",
    ),
    Note(
        "proofs",
        ("ppoi",),
        "A proof service that is up to date says nothing about your wallet's proofs, compliance or balance.",
    ),
    Note(OTHERS, ("ppoi", "hosted-indexer"), "Run by other people, not by the operator of the monitor."),
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
