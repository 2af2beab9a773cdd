"""The simulated upstreams on one port, speaking their own protocols, with a control route for faults; and how a faulty
one behaves on the wire."""

import asyncio
import json
import random
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Literal, NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from lookout.demo.sim.faults import FAULTS, Fault, FaultKind, OrderError
from lookout.demo.sim.indexers import DOCUMENT, ENVIO, INDEX_NODE, PONDER, SQUID, SUBGRAPH, deployment
from lookout.demo.sim.ppoi import NODE
from lookout.demo.sim.rpc import BUNDLER, ENDPOINT, PROVIDER, RELAYER
from lookout.demo.sim.upstream import Asked, Upstream, UpstreamReply, html_reply, json_reply, rpc_error, text_reply
from lookout.demo.sim.waku import MESSAGES, PEERS, broadcasters
from lookout.demo.sim.world import World, launch_world

_LONGEST_S: Final = 600.0  # that a connection is kept open on purpose
_DRIP_S: Final = 1.0
_PAUSE_S: Final = 0.002  # between two pieces of a flood
_FLOOD_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
# How each flood begins, and the piece that it repeats.
_FLOODS: Final = {
    "endless": (_FLOOD_HEAD + b'\r\n{"jsonrpc":"2.0","id":1,"result":"0x', b"0" * 65_536),
    "interim": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 2_000),
    "chunks": (_FLOOD_HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n" * 10_000),
}
_NUMBERS: Final = b"[" + b"1e308," * 170_000 + b"1e308]"
_GARBAGE_BYTES: Final = 512
_SPEAK_JSON_RPC: Final = ("rpc", "provider", "bundler", "ppoi")


async def misbehave(request: web.Request, family: str, fault: Fault) -> web.StreamResponse:
    match fault.kind:
        case "hang":
            return await hang(request)
        case "endless" | "interim" | "chunks":
            return await _flood(request, *_FLOODS[fault.kind])
        case "numbers":
            return respond(UpstreamReply(_NUMBERS))
        case "garbage":  # never JSON, however drawn
            return respond(UpstreamReply(b"\xff" + random.Random(request.path).randbytes(_GARBAGE_BYTES)))
        case "html":
            return respond(html_reply("Attention Required! Please verify that you are human.", 200))
        case "status":
            return await _fail(request, family, fault.size)
        case "rate-limit" if family in _SPEAK_JSON_RPC:
            error = rpc_error(await _read_json(request), -32005, "limit exceeded")
            return respond(json_reply(error, fault.size))
        case "rate-limit":
            return respond(text_reply("Too Many Requests", fault.size))
        case _:
            return reset(request)


async def hang(request: web.Request) -> web.StreamResponse:
    await asyncio.sleep(_LONGEST_S)
    return reset(request)


async def drip(request: web.Request, reply: UpstreamReply) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.http_code, headers={"Content-Type": reply.content_type})
    response.content_length = len(reply.body)
    await response.prepare(request)
    for byte in reply.body[: round(_LONGEST_S / _DRIP_S)]:
        await response.write(bytes([byte]))
        await asyncio.sleep(_DRIP_S)
    return response


async def _flood(request: web.Request, start: bytes, piece: bytes) -> web.StreamResponse:
    """Send bytes without an end, as they are."""
    transport = request.transport
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_S):
            while transport is not None and not transport.is_closing():
                if not transport.get_write_buffer_size():
                    transport.write(start + piece)
                    start = b""
                await asyncio.sleep(_PAUSE_S)
    return reset(request)


async def _fail(request: web.Request, family: str, http_code: int) -> web.Response:
    message = HTTPStatus(http_code).phrase if http_code in set(HTTPStatus) else "Error"
    if family == "ppoi" and http_code >= 400:
        return respond(json_reply(rpc_error(await _read_json(request), -32603, message), http_code))
    response = respond(text_reply(message, http_code))
    if http_code < 400:
        response.headers["Location"] = "/elsewhere"
    return response


def respond(reply: UpstreamReply) -> web.Response:
    return web.Response(body=reply.body, status=reply.http_code, headers={"Content-Type": reply.content_type})


def reset(request: web.Request) -> web.Response:
    transport = request.transport
    if transport is not None:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


async def _read_json(request: web.Request) -> object:
    try:
        document: object = json.loads(await request.read())
    except ValueError:
        return None
    return document


UPSTREAMS: Final = (
    *(ENDPOINT, PROVIDER, BUNDLER, RELAYER, NODE, MESSAGES, PEERS),
    *(SQUID, SUBGRAPH, DOCUMENT, INDEX_NODE, PONDER, ENVIO),
)
CERTIFICATE: Final = "cert.pem"
KEY: Final = "key.pem"
_CERTIFICATE_LASTS: Final = timedelta(days=3_650)
_CLOCKS_DIFFER_BY: Final = timedelta(days=1)
_LAST_WORDS_S: Final = 0.1
_BACKLOG: Final = 1_024


class UpstreamFront(NamedTuple):
    """What stands in front of the upstreams, as nginx does in front of real ones."""

    tls: ssl.SSLContext | None = None
    compresses: bool = False

    @property
    def scheme(self) -> Literal["http", "https"]:
        return "http" if self.tls is None else "https"

    def put_before(self, application: web.Application) -> None:
        if self.compresses:
            application.middlewares.append(_compress)


BARE: Final = UpstreamFront()


@web.middleware
async def _compress(request: web.Request, handler: Handler) -> web.StreamResponse:
    response = await handler(request)
    accepted = request.headers.get("Accept-Encoding", "")
    if isinstance(response, web.Response) and response.status == 200 and "gzip" in accepted:
        response.headers["Vary"] = "Accept-Encoding"
        response.enable_compression(web.ContentCoding.gzip)
    return response


class Simulation:
    """The upstreams of one world as HTTP handlers. ``now`` is the world's time in milliseconds since 1970."""

    def __init__(self, world: World, now: Callable[[], int]) -> None:
        self._world = world
        self._now = now

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get("/", self._index),
                web.get("/control", self._overview),
                web.post("/control", self._order),
                *(web.route(upstream.method, upstream.route, self._handler(upstream)) for upstream in UPSTREAMS),
            ]
        )
        application.on_response_prepare.append(self._date)
        return application

    async def _date(self, _: web.Request, response: web.StreamResponse) -> None:
        """By the world's time, as its blocks are dated."""
        response.headers["Date"] = formatdate(self._now() / 1000, usegmt=True)

    async def _index(self, _: web.Request) -> web.StreamResponse:
        world = self._world
        members = {chain.chain_id: broadcasters(world.seed, chain.chain_id, chain.members) for chain in world.layout}
        index = {
            "subjects": list(world.addresses),
            "deployments": {chain.chain_id: deployment(chain.chain_id) for chain in world.layout},
            "broadcasters": {chain_id: [member.address for member in its] for chain_id, its in members.items()},
        }
        return respond(json_reply(index))

    async def _overview(self, _: web.Request) -> web.StreamResponse:
        faults = {name: _describe(kind) for name, kind in FAULTS.items()}
        return respond(json_reply({"set": self._world.faults.ordered_at(self._now()), "faults": faults}))

    async def _order(self, request: web.Request) -> web.StreamResponse:
        """Apply an order and list what is set now; or refuse it, changing nothing."""
        at = self._now()
        try:
            self._world.faults.order(json.loads(await request.read()), at)
        except OrderError as problem:
            return respond(json_reply({"error": str(problem)}, 400))
        except ValueError as problem:
            return respond(json_reply({"error": f"the body is not JSON: {problem}"}, 400))
        return respond(json_reply({"set": self._world.faults.ordered_at(at)}))

    def _handler(self, upstream: Upstream) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            variables = request.match_info
            address, path = upstream.address.format(**variables), variables.get("path", "")
            if address not in self._world.addresses:
                return respond(text_reply(f"there is no {address} in this world", 404))
            body = await request.read()
            fault = self._world.wire_fault(address, self._now())
            kind = None if fault is None else fault.kind
            if fault is not None and kind not in ("drip", "late", "slow-pages"):
                return await misbehave(request, address.partition("/")[0], fault)
            if fault is not None and (kind == "late" or (kind == "slow-pages" and path.startswith("/store/"))):
                await asyncio.sleep(fault.size / 1000)
            asked = Asked(self._world, address, request.method, path, request.query, body, self._now())
            reply = upstream.reply(asked)
            if reply is None:
                return await hang(request)
            return await drip(request, reply) if kind == "drip" else respond(reply)

        return answer


def _describe(kind: FaultKind) -> dict[str, object]:
    if kind.parameter is None:
        return {"appliesTo": kind.applies_to}
    name, default, lowest, highest, _ = kind.parameter
    parameter = {"name": name, "default": default, "lowest": lowest, "highest": highest}
    return {"appliesTo": kind.applies_to, "parameter": parameter}


def load_or_make(folder: Path, host: str) -> ssl.SSLContext:
    """TLS with the certificate and the key of a folder, which are made for this host if both are missing. OSError if
    they cannot be used."""
    certificate, key = folder / CERTIFICATE, folder / KEY
    if not certificate.exists() and not key.exists():
        folder.mkdir(parents=True, exist_ok=True)
        key.touch(mode=0o600)
        certificate_pem, key_pem = _make_certificate(host)
        key.write_bytes(key_pem)
        certificate.write_bytes(certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _make_certificate(host: str) -> tuple[bytes, bytes]:
    """A certificate that signs itself, so that a client that trusts it needs no other file; and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "simulated upstreams")])
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER_BY)
        .not_valid_after(now + _CERTIFICATE_LASTS)
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    key_pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), key_pem


def _names(host: str) -> Iterator[x509.GeneralName]:
    for name in dict.fromkeys((host, "localhost", "127.0.0.1", "::1")):
        try:
            yield x509.IPAddress(ip_address(name))
        except ValueError:
            yield x509.DNSName(name)


@asynccontextmanager
async def serving(
    host: str, port: int, world: World, now: Callable[[], int], front: UpstreamFront = BARE
) -> AsyncIterator[tuple[str, int]]:
    """Serve a world's upstreams meanwhile; the address is the bound one, also when the port was 0."""
    application = Simulation(world, now).application()
    front.put_before(application)
    runner = web.AppRunner(
        application,
        access_log=None,
        handler_cancellation=True,  # so that a connection that its client gave up is not held
        shutdown_timeout=_LAST_WORDS_S,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=front.tls, backlog=_BACKLOG).start()
        bound_host, bound_port, *_ = runner.addresses[0]
        yield bound_host, bound_port
    finally:
        await runner.cleanup()


async def serve_forever(
    host: str, port: int, seed: int | None, front: UpstreamFront, ready: Callable[[str, int], None]
) -> None:
    async with serving(host, port, launch_world(seed, wall_clock()), wall_clock, front) as (bound_host, bound_port):
        ready(bound_host, bound_port)
        await asyncio.Event().wait()


def wall_clock() -> int:
    return time.time_ns() // 1_000_000
