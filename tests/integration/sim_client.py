"""A client of the simulated upstreams, and a check of announcements that shares nothing with what made them."""

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import Signature, signature
from typing import Any, Concatenate, NamedTuple, ParamSpec

import aiohttp
import yarl
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from lookout.demo.sim.front import BARE, Front
from lookout.demo.sim.server import serving
from lookout.demo.sim.upstreams import launch_world
from lookout.demo.sim.world import World
from tests.builders import NOON

Given = ParamSpec("Given")

PATIENCE_S = 0.4  # how long a test waits for an answer that never comes

CHAINS = (1, 42161, 137, 56, 11155111)
REQUIRED_LIST = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"
NETWORKS = ["Ethereum", "Arbitrum", "Polygon", "BNB_Chain", "Ethereum_Sepolia"]

LATEST = {"jsonrpc": "2.0", "id": 7, "method": "eth_getBlockByNumber", "params": ["latest", False]}
NODE_STATUS = {"jsonrpc": "2.0", "id": 1, "method": "ppoi_node_status", "params": {}}
SQUID = {"query": "{ squidStatus { height } }"}
META = {"query": "{ _meta { block { number timestamp } hasIndexingErrors } }"}


class Answer(NamedTuple):
    """What came back."""

    http_code: int
    content_type: str
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Clock:
    """The world's time, which only a test moves."""

    def __init__(self, at: int = NOON) -> None:
        self.at = at

    def now(self) -> int:
        return self.at

    def pass_s(self, seconds: float) -> None:
        self.at += round(seconds * 1000)


class Client:
    """Asks a running simulation."""

    def __init__(self, session: aiohttp.ClientSession, base: str, clock: Clock) -> None:
        self.session = session
        self.base = base
        self.clock = clock

    def url(self, path: str) -> yarl.URL:
        return yarl.URL(self.base + path, encoded=True)

    async def get(self, path: str) -> Answer:
        async with self.session.get(self.url(path), allow_redirects=False) as response:
            return Answer(response.status, response.content_type, await response.read())

    async def post(self, path: str, document: object) -> Answer:
        return await self.post_bytes(path, json.dumps(document).encode())

    async def post_bytes(self, path: str, body: bytes) -> Answer:
        async with self.session.post(self.url(path), data=body, allow_redirects=False) as response:
            return Answer(response.status, response.content_type, await response.read())

    async def rpc(self, endpoint: str, method: str, *params: object) -> Any:
        request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
        answer = await self.post(f"/rpc/{endpoint}", request)
        assert (answer.http_code, answer.content_type) == (200, "application/json")
        assert (answer.document["jsonrpc"], answer.document["id"]) == ("2.0", 7)
        return answer.document["result"]

    async def height(self, endpoint: str) -> int:
        return int((await self.rpc(endpoint, "eth_getBlockByNumber", "latest", False))["number"], 16)

    async def squid(self, path: str) -> int:
        answer = await self.post(f"/{path}/graphql", {"query": "{ squidStatus { height } }"})
        assert answer.http_code == 200
        height: int = answer.document["data"]["squidStatus"]["height"]
        return height

    async def ppoi(self) -> Any:
        return (await self.get("/ppoi/node-status-v2")).document

    async def store(self, **query: str | int) -> Any:
        asked: dict[str, str | int] = {"includeData": "true", "pubsubTopic": "/waku/2/rs/5/1", "pageSize": 100}
        asked |= query
        return (await self.get(f"/waku/store/v3/messages?{yarl.URL.build(query=asked).raw_query_string}")).document

    async def order(self, target: str, fault: str | None, **parameters: int) -> None:
        answer = await self.post("/control", {"target": target, "fault": fault, **parameters})
        assert answer.http_code == 200, answer.body

    async def never_answers(self, path: str, document: object) -> bool:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.post(path, document)
        except TimeoutError:
            return True
        return False


def simulate(
    scene: Callable[[Client], Awaitable[None]], world: World | None = None, at: int = NOON, front: Front = BARE
) -> None:
    """Run a scene against a simulation of its own."""

    async def play() -> None:
        clock = Clock(at)
        async with serving("127.0.0.1", 0, world or launch_world(None, at), clock.now, front) as (host, port):
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as session:
                await scene(Client(session, f"{front.scheme}://{host}:{port}", clock))

    asyncio.run(play())


def simulated(
    *, front: Front = BARE
) -> Callable[[Callable[Concatenate[Client, Given], Awaitable[None]]], Callable[Given, None]]:
    """Makes a test of a scene: it has a simulation of its own, and is given a client of it."""

    def decorate(scene: Callable[Concatenate[Client, Given], Awaitable[None]]) -> Callable[Given, None]:
        @wraps(scene)
        def test(*args: Given.args, **given: Given.kwargs) -> None:
            simulate(lambda client: scene(client, *args, **given), front=front)

        _, *others = signature(scene).parameters.values()
        test.__signature__ = Signature(others)  # type: ignore[attr-defined]  # what pytest has to give
        return test

    return decorate


def content_of(message: Any) -> Any:
    """What an announcement says, verified or not."""
    return json.loads(bytes.fromhex(json.loads(base64.b64decode(message["payload"]))["data"]))


def verifies(payload: bytes) -> bool:
    """Whether an announcement is signed by the viewing key of the address it names."""
    envelope = json.loads(payload)
    content = bytes.fromhex(envelope["data"])
    key = Ed25519PublicKey.from_public_bytes(viewing_key(json.loads(content)["railgunAddress"]))
    try:
        key.verify(bytes.fromhex(envelope["signature"]), content)
    except InvalidSignature:
        return False
    return True


def viewing_key(address: str) -> bytes:
    content = decoded(address)
    network = bytes(one ^ other for one, other in zip(content[33:41], b"railgun".ljust(8, b"\0"), strict=True))
    assert (len(content), content[0]) == (73, 1)
    assert network == b"\xff" * 8 or network[0] == 0  # all networks, or an EVM one
    return content[41:]


def decoded(address: str) -> bytes:
    """The bytes in a bech32m address, its checksum verified by polynomial division over GF(32), digit by digit."""
    prefix, _, rest = address.rpartition("1")
    assert (prefix, len(address)) == ("0zk", 127)
    symbols = ["qpzry9x8gf2tvdw0s3jn54khce6mua7l".index(letter) for letter in rest]
    digits = [1, *(ord(letter) // 32 for letter in prefix), 0, *(ord(letter) % 32 for letter in prefix), *symbols]
    for index in range(len(digits) - 6):
        for place, coefficient in enumerate((29, 22, 20, 21, 29, 18), start=index + 1):
            digits[place] ^= _times(digits[index], coefficient)
    assert _joined(digits[-6:]) == 0x2BC830A3
    number = _joined(symbols[:-6])
    unused = len(symbols[:-6]) * 5 % 8
    assert number % (1 << unused) == 0
    return (number >> unused).to_bytes(73)


def _joined(digits: list[int]) -> int:
    number = 0
    for digit in digits:
        number = number * 32 + digit
    return number


def _times(one: int, other: int) -> int:
    """A product in GF(32) with x^5 = x^3 + 1."""
    product = 0
    for bit in range(5):
        if other >> bit & 1:
            product ^= one << bit
    for bit in range(8, 4, -1):
        if product >> bit & 1:
            product ^= 0b101001 << bit - 5
    return product
