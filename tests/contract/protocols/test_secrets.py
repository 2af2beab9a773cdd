"""A secret in an address or a header appears in no reason, no repr and no traceback."""

import traceback
from collections.abc import Awaitable, Callable

import pytest

from lookout.config.settings import Settings, sources_of
from lookout.config.tables import ChainTable, RpcEndpoint
from lookout.protocols.broadcasters.seen import BroadcastersTable
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import KindTable
from lookout.protocols.client.session import open_session
from lookout.protocols.generic import HttpTable, JsonRpcTable, JsonTable
from lookout.protocols.messaging import MessagingTable
from lookout.protocols.ppoi import PpoiTable
from lookout.protocols.subgraph import SubgraphTable
from tests.builders import NOON
from tests.contract.protocols.upstreams import Asked, Reply, answering

SECRET = "hunter2"  # noqa: S105 - the one that must not show
ECHO = f'{{"error":{{"code":-32005,"message":"{SECRET}"}},"errors":["{SECRET}"],"{SECRET}":1}}'.encode()


def with_secrets(base: str) -> Settings:
    """Every kind of source, each with the secret wherever one can be."""
    url = base.replace("://", f"://{SECRET}:{SECRET}@") + f"/{SECRET}?key={SECRET}"
    headers = {"X-Api-Key": SECRET}
    return Settings(
        chains=(ChainTable(id=1, name="Ethereum", block_time_s=12, rpc=(RpcEndpoint(url),)),),
        sources={
            "ppoi": (PpoiTable(url, "efc6", (1,), headers=headers),),
            "indexer": (
                KindTable(1, "squid", url, 5, headers=headers),
                SubgraphTable(2, "subgraph", url, 5, headers=headers),
                KindTable(3, "ponder", url, 5, headers=headers),
                JsonTable(4, "json", url, 5, pointer="/block", headers=headers),
            ),
            "hosted-indexer": (
                SubgraphTable(1, "subgraph", url, 5, deployment="Qm", headers=headers),
                KindTable(2, "envio", url, 5, headers=headers),
                KindTable(3, "evm", url, 5, headers=headers),
                HttpTable(4, "http", url, pointer="/block", headers=headers),
                JsonRpcTable(5, "jsonrpc", url, method="eth_chainId", pointer="/0", headers=headers),
            ),
            "messaging": (MessagingTable(url, headers=headers),),
            "broadcasters": (BroadcastersTable(url, (1,), "relay", headers=headers),),
        },
    )


async def failures(base: str) -> list[ProbeFailed]:
    built = sources_of(with_secrets(base))
    assert SECRET not in repr(built)
    assert not any(SECRET in asked.name for asked in built.sources)
    assert not any(SECRET in asked.name for asked in built.endpoints)
    async with open_session(20) as session:
        asking: list[Awaitable[object]] = [source.probe(session, lambda: NOON) for source in built.sources]
        asking += [endpoint.read(session, lambda: NOON) for endpoint in built.endpoints]
        return [await failure_of(each) for each in asking]


async def failure_of(asking: Awaitable[object]) -> ProbeFailed:
    with pytest.raises(ProbeFailed) as caught:
        await asking
    return caught.value


def check_silent(gathered: list[ProbeFailed]) -> None:
    assert len(gathered) == 13
    for failure in gathered:
        assert SECRET not in failure.reason
        assert SECRET not in repr(failure)
        assert SECRET not in "".join(traceback.format_exception(failure))


@pytest.mark.parametrize(
    "base",
    [
        pytest.param("http://127.0.0.1:1", id="refused"),
        pytest.param(f"http://{SECRET}.invalid", id="a name that is a secret itself"),
        pytest.param("https://127.0.0.1:1", id="refused with TLS"),
    ],
)
async def test_an_upstream_that_is_not_there_leaks_nothing(base: str) -> None:
    check_silent(await failures(base))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _: (200, ECHO), id="an answer that repeats it"),
        pytest.param(lambda _: (200, SECRET.encode()), id="an answer that is it"),
        pytest.param(lambda _: (401, ECHO), id="a refusal that repeats it"),
        pytest.param(lambda _: (302, ECHO), id="a redirect"),
        pytest.param(lambda _: (200, b'{"result":"hunter2","id":1}'), id="a result that is it"),
    ],
)
async def test_an_upstream_that_repeats_it_leaks_nothing(answer: Callable[[Asked], Reply]) -> None:
    async with answering(answer) as (url, asked):
        check_silent(await failures(url))
        assert all(SECRET in each.target for each in asked)
        unasked = [each for each in asked if each.headers.get("x-api-key") != SECRET]
        assert len(unasked) == 1  # the chain's endpoint, which has no headers of its own
