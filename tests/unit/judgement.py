"""The policy asked one finding after the other, as its tests ask it."""

from lookout.core.heads import Reference
from lookout.core.model import Check, Failed, Found, Row
from lookout.core.plan import Limits
from lookout.core.policy import Memory, judge
from tests.builders import LAUNCH, NOON, SECOND, an_observation

FAILED = Failed("timeout")
FRESH = Memory()
LIFETIME = 150 * SECOND


def judge_all(
    check: Check,
    *seen: tuple[int, Found],
    reference: Reference | None = None,
    memory: Memory = FRESH,
    limits: Limits = LAUNCH,
    blind: bool = False,
) -> tuple[Memory, list[Row]]:
    """The rows that these findings give one after the other, each so many milliseconds after noon."""
    rows = []
    for after_noon, found in seen:
        observation = an_observation(found, at=NOON + after_noon, check=check)
        memory, row = judge(memory, observation, reference, limits, blind=blind)
        rows.append(row)
    return memory, rows


def judge_one(check: Check, found: Found, **given: object) -> Row:
    return judge_all(check, (0, found), **given)[1][-1]  # type: ignore[arg-type]


def describe(row: Row) -> str:
    return f"{row.status}/{row.reason}"
