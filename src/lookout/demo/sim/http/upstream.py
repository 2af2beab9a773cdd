"""What a simulated upstream is: one value, declared beside the function that answers for it."""

from collections.abc import Callable
from typing import NamedTuple

from lookout.demo.sim.http.reply import UpstreamReply
from lookout.demo.sim.upstreams import Upstreams


class Asked(NamedTuple):
    """One request that was made of an address."""

    upstreams: Upstreams
    address: str
    method: str
    path: str  # what follows the upstream's own address, where its route has such a part
    body: bytes
    at: int


class Upstream(NamedTuple):
    """``route`` is aiohttp's; ``address`` may have the route's variables in it. No reply is silence."""

    method: str
    route: str
    address: str
    reply: Callable[[Asked], UpstreamReply | None]
