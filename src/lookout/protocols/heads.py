"""Reading the endpoints of a chain once, and the head that they agree on (M8)."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from lookout.base.clock import Clock
from lookout.core.agreement import Agreement, Standing
from lookout.core.heads import Heads, Reading
from lookout.protocols.client.failure import OwnFault, ProbeFailed, WrongChainFailed
from lookout.protocols.client.session import Session
from lookout.protocols.source import Endpoint


class HeadAnswer(NamedTuple):
    """An endpoint's block, or the cause of its failure."""

    said: Reading | str
    took_ms: int
    is_wrong_chain: bool = False


async def read_endpoint(endpoint: Endpoint, session: Session, clock: Clock) -> HeadAnswer:
    """OwnFault if a local resource ran out."""
    began_ms = clock.elapsed_ms()
    try:
        said: Reading | str = await endpoint.read(session, clock.now)
    except ProbeFailed as failure:
        is_wrong_chain = isinstance(failure, WrongChainFailed)
        return HeadAnswer(failure.reason, clock.elapsed_ms() - began_ms, is_wrong_chain)
    return HeadAnswer(said, clock.elapsed_ms() - began_ms)


def enter_answer(agreement: Agreement, number: int, answer: HeadAnswer) -> Reading | str:
    """Add an endpoint's answer to the agreement; return its block, or the cause of its failure."""
    if isinstance(answer.said, str):
        agreement.failed(number, is_wrong_chain=answer.is_wrong_chain)
        return answer.said
    return answer.said if agreement.answered(number, answer.said) else "future_block"


class HeadsRead(NamedTuple):
    """The result of reading all endpoints of a chain once; ``answers`` and ``standings`` are in their order."""

    head: Reading | None
    answers: tuple[HeadAnswer, ...]
    standings: tuple[Standing, ...]
    heights: dict[str, int]
    """The heights of the endpoints that agree on the head, by name."""


async def read_heads_once(
    endpoints: Sequence[Endpoint], heads: Heads, max_age_ms: int, session: Session, clock: Clock
) -> HeadsRead:
    """Read all endpoints of a chain, as after a start, and add their agreed head to ``heads``."""

    async def read(endpoint: Endpoint) -> HeadAnswer:
        began_ms = clock.elapsed_ms()
        try:
            return await read_endpoint(endpoint, session, clock)
        except OwnFault as fault:
            return HeadAnswer(fault.cause, clock.elapsed_ms() - began_ms)

    agreement = Agreement(len(endpoints), max_age_ms)
    answers = await asyncio.gather(*map(read, endpoints))
    entered = tuple(
        answer._replace(said=enter_answer(agreement, number, answer)) for number, answer in enumerate(answers)
    )
    now = clock.now()
    head = agreement.agreed(now, heads)
    if head is not None:
        heads.read(head)
    heights = {endpoints[number].name: height for number, height in agreement.heights(now, heads).items()}
    return HeadsRead(head, entered, agreement.standings(now, heads), heights)
