"""A small chain and an indexer's list of it, for looks at them to be answered from."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lookout.core.completeness.asks import (
    Ask,
    AskList,
    AskLogs,
    AskPosition,
    AskReceipt,
    Listed,
    Log,
    Position,
    Receipt,
)
from lookout.core.completeness.coverage import Coverage, Finding, Stage
from lookout.core.completeness.looks import run_task
from lookout.core.completeness.tasks import Facts, Rules, Task
from tests.builders import MINUTE, NOON

RULES = Rules(first_block=100, lowest_block=100, limit=10, endpoints=2)
EMPTY = Coverage(subject="", began_at=NOON)
FACTS = Facts(NOON, 1_000, 1_010, {"a": 1_050, "b": 1_050, "c": 1_050})


def a_hash(number: int) -> str:
    return f"0x{number:032x}{number:032x}"


def a_finding(number: int, block: int, stage: Stage = "suspected", age_ms: int = 6 * MINUTE) -> Finding:
    """Found in the hundred blocks around."""
    first, at = block - block % 100, NOON - age_ms
    return Finding(
        hash=a_hash(number),
        first=first,
        last=first + 99,
        block=block,
        stage=stage,
        seen_at=at,
        looked_at=at,
        proved_at=at,
    )


class Both(NamedTuple):
    """The blocks of the transactions, by their numbers: on the chain and in the list."""

    chain: Mapping[int, int] = {}
    listed: Mapping[int, int] = {}
    position: int | None = 1_010
    receipts: Mapping[str, Any] = {}
    """By endpoints, what they answer when they are asked for one that is not on the chain."""
    change: Callable[[Ask, Any], Any] = lambda _, answer: answer

    def answer(self, ask: Ask) -> Any:
        return self.change(ask, self._answer(ask))

    def _answer(self, ask: Ask) -> Any:
        match ask:
            case AskPosition():
                return Position(NOON + MINUTE, self.position)
            case AskList(first, last):
                hashes = frozenset(a_hash(each) for each, block in self.listed.items() if first <= block <= last)
                return Listed(hashes, len(hashes))
            case AskLogs(_, first, last):
                blocks = self.chain.items()
                return frozenset(
                    Log(block, f"b{block}", a_hash(each), 0) for each, block in blocks if first <= block <= last
                )
            case AskReceipt(endpoint, transaction):
                places = {a_hash(each): block for each, block in self.chain.items()}
                if transaction in places:
                    return Receipt(places[transaction], has_event=True)
                return self.receipts.get(endpoint)


def look(
    task: Task, both: Both, coverage: Coverage = EMPTY, rules: Rules = RULES, facts: Facts = FACTS
) -> tuple[Coverage, list[Ask]]:
    """What is known after the look, and what was asked."""
    asked: list[Ask] = []
    steps = run_task(task, coverage, rules, facts)
    try:
        ask = next(steps)
        while True:
            asked.append(ask)
            ask = steps.send(both.answer(ask))
    except StopIteration as end:
        return end.value, asked
