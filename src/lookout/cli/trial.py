"""What the sources of a draft say when they are asked once."""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from rich.console import Console

from lookout.app.process import run
from lookout.base.clock import SystemClock
from lookout.cli.draft import Draft, DraftTable
from lookout.config.settings import Settings
from lookout.core.causes import OWN_CAUSES, code_of
from lookout.core.services import SERVICES
from lookout.monitor.probe import Probed, ProbedRow, probe_once
from lookout.protocols.registry import kinds_for

_NOTHING: Final = "nothing"


def probe_all(settings: Mapping[str, Settings]) -> dict[str, Probed]:
    """Ask all of them at the same time, and say meanwhile that it takes a while."""
    longest_s = max(each.policy.probe_timeout_s for each in settings.values())

    async def ask() -> list[Probed]:
        return await asyncio.gather(*(probe_once(each, SystemClock()) for each in settings.values()))

    with Console(stderr=True).status(f"asking, for up to {longest_s:g} s"):
        return dict(zip(settings, run(ask()), strict=True))


def probe_draft(draft: Draft) -> Probed:
    return probe_all({"": draft.settings()})[""]


def select_rows(probed: Probed, table: DraftTable) -> list[ProbedRow]:
    """The rows that a table is about."""
    of_service = (each for each in probed.rows if each.row.check.service == table.name)
    return [each for each in of_service if each.row.status != "unmonitored"]


class TriedKinds(NamedTuple):
    found: dict[str, ProbedRow]
    """By the kind; those first that fit best."""
    not_tried: dict[str, str]
    """Why, by the kind."""


def try_kinds(draft: Draft, table: DraftTable) -> TriedKinds:
    """What each kind finds at an indexer's address. A kind that needs more than an address is not tried."""
    drafts = {each.name: draft.narrow_to(table.with_keys(kind=each.name)) for each in kinds_for(SERVICES[table.name])}
    not_tried = {kind: problems[0] for kind, each in drafts.items() if (problems := each.problems())}
    probed = probe_all({kind: each.settings() for kind, each in drafts.items() if kind not in not_tried})
    found = {kind: select_rows(each, table)[0] for kind, each in probed.items()}
    best_first = sorted(found.items(), key=lambda each: (not fits(each[1]), each[1].cause == _NOTHING))
    return TriedKinds(dict(best_first), not_tried)


def fits(probed: ProbedRow) -> bool:
    """Whether the answer was understood, whatever it says. What this machine could not ask proves nothing."""
    code = code_of(probed.cause or "")
    return probed.cause is None or (code in OWN_CAUSES and code != "own_fault")
