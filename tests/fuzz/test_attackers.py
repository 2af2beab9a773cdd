"""Indexers that attack by their lists, beside honest sources: minutes of them in a moment, without times."""

import json
from pathlib import Path

import msgspec
import pytest

from lookout.protocols.client.request import Request
from tests.compared import a_compared_config
from tests.fuzz.attackers import ATTACKS, CONFIRMED, Attacker
from tests.logs import capture_logs
from tests.stores import read_texts
from tests.unit.running_monitor import FastClock
from tests.unit.simulated_upstreams import BASE, Life, Place, live

LARGEST_STORE = 10_000_000
LONGEST_BODY = 4_096
MINUTES = 5
SHORT_PAGE = 500
ALERTS = '[alerts]\ntargets = {ops = "json://127.0.0.1:1/"}\n[[alerts.rules]]\nfrom = "degraded"\nfor_s = 0\n'
CONFIG = a_compared_config(BASE, None, "indexer", "hosted-indexer", more=ALERTS)


class AttackedPlace(Place):
    """The indexer attacks by its entries alone; its position is an honest one's."""

    def __init__(self, clock: FastClock, attacker: Attacker) -> None:
        super().__init__(clock)
        self.attacker = attacker

    async def answer(self, request: Request) -> bytes:
        variables = json.loads(request.body or b"{}").get("variables") or {}
        honest = await super().answer(request)
        return self.attacker.answer(variables["id"]) if "id" in variables else honest


@pytest.mark.clause("M6", "M16", "S20")
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attacking_list_makes_no_long_store_alert_or_line_and_harms_no_other_row(name: str, tmp_path: Path) -> None:
    attacker, life = Attacker(name, SHORT_PAGE), list[Life]()

    async def story(lived: Life) -> None:
        await lived.wait(60 * MINUTES)
        life.append(lived)

    with capture_logs() as lines:
        live(
            tmp_path,
            CONFIG.replace("confirmations = 12\n", "confirmations = 12\nlinks = {}\n", 1),
            story,
            make_place=lambda clock: AttackedPlace(clock, attacker),
        )
    (lived,) = life
    stored = read_texts(lived.store.state)
    assert MINUTES <= attacker.asked < 20 * MINUTES
    assert lived.store.status("hosted-indexer") == "current/synced"
    assert sum(map(len, stored)) < LARGEST_STORE
    alerts = [json.loads(text) for kept, text in lived.store.others.items() if kept.startswith("alerts/")]
    assert bool(alerts) == (name in CONFIRMED)
    assert all(len(alert["body"].encode()) <= LONGEST_BODY for alert in alerts)
    board = lived.instruments.board.list_entries()
    shown = [*map(str, lines), *(alert["body"] for alert in alerts), msgspec.json.encode(board).decode()]
    assert [text for text in (*shown, *stored) if "curl" in text or "[2J" in text or "z" * 300 in text] == []
