"""A bare upstream for measurements: every protocol that a probe needs, each answer ready-made, in a process of its own.

python -m bench.upstream CHAINS    prints its port and answers until its input ends
"""

import asyncio
import sys
import time
from contextlib import suppress
from functools import cache

from lookout.demo.sim.upstreams import REQUIRED_LIST

NETWORK = (
    f'{{"txidStatus":{{"currentTxidIndex":42,"validatedTxidIndex":42}},"listStatuses":{{"{REQUIRED_LIST}":{{}}}}}}'
)


@cache
def node_status() -> bytes:
    networks = ",".join(f'"N{n}":{NETWORK}' for n in range(1, int(sys.argv[1]) + 1))
    return (
        f'{{"jsonrpc":"2.0","id":1,"result":{{"forNetwork":{{{networks}}},"listKeys":["{REQUIRED_LIST}"]}}}}'.encode()
    )


HEIGHT = 1_005
SQUID = b'{"data":{"squidStatus":{"height":1000}}}'
PEERS = b'[{"multiaddr":"/ip4/1.2.3.4"}]'
STORE = b'{"requestId":"x","statusCode":200,"statusDesc":"OK","messages":[]}'


def answer(path: bytes, body: bytes) -> bytes:
    if path.startswith(b"/rpc/"):
        if b"eth_chainId" in body:
            return b'{"jsonrpc":"2.0","id":1,"result":"%s"}' % hex(int(path.split(b"/")[2])).encode()
        now = hex(int(time.time()) - 1).encode()
        block = hex(HEIGHT).encode(), now
        return b'{"jsonrpc":"2.0","id":2,"result":{"number":"%s","hash":"0xab","timestamp":"%s"}}' % block
    if path.startswith(b"/ppoi"):
        return node_status()
    if path.startswith(b"/waku/store"):
        return STORE
    if path.startswith(b"/waku"):
        return PEERS
    return SQUID


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = 0
            for line in head.split(b"\r\n"):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            body = await reader.readexactly(length) if length else b""
            path = head.split(b" ", 2)[1]
            reply = answer(path, body)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                % (len(reply), reply)
            )
            await writer.drain()
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=4096, limit=2**16)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
