"""What may stand in front of the upstreams, as nginx does in front of real ones: TLS, and compression."""

import ssl
from typing import Final, Literal, NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler


class UpstreamFront(NamedTuple):
    """How the upstreams are reached."""

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
    """A whole answer, for a client that accepts it; what is given in drops would wait for the end."""
    response = await handler(request)
    accepted = request.headers.get("Accept-Encoding", "")
    if isinstance(response, web.Response) and response.status == 200 and "gzip" in accepted:
        response.headers["Vary"] = "Accept-Encoding"
        response.enable_compression(web.ContentCoding.gzip)
    return response
