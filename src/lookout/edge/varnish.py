"""The settings as a configuration of Varnish."""

from importlib.resources import files
from ipaddress import ip_network
from string import Template
from typing import Final

from lookout.config.settings import Settings
from lookout.core.wire import paths
from lookout.host_port import host_and_port

_MINUTE_S: Final = 60
_BUCKET: Final = 12  # requests of a caller that one bucket counts
_MOST: Final = 10**9  # requests in a minute; Varnish reads no number of more than 15 digits


class _Piece(Template):
    """VCL has a use for the dollar sign, but none for this."""

    delimiter = "@"


def configuration(settings: Settings, minute_s: int = _MINUTE_S) -> str:
    """VCL for Varnish 7 with varnish-modules. A minute has another length where somebody cannot wait for one."""
    server = settings.server
    host, port = host_and_port(settings.edge.origin)
    live, history = paths(settings.protocol)
    pieces = [_piece("origin", host=host, port=str(port), authority=settings.edge.origin)]
    if server.trusted_proxies:
        pieces.append(_piece("proxies", networks=_networks(server.trusted_proxies)))
    pieces.append(_piece("routes", live=live, history=history, longest=str(len(history))))
    if server.rate_limit_per_minute:
        pieces.append(_limit(server.rate_limit_per_minute, server.ban_s, minute_s))
    pieces.append(_piece("cache"))
    return "".join(pieces)


def _piece(name: str, **values: str) -> str:
    return _Piece(files(__package__).joinpath(f"{name}.vcl").read_text(encoding="utf-8")).substitute(values)


def _networks(trusted_proxies: tuple[str, ...]) -> str:
    networks = (ip_network(proxy, strict=False) for proxy in trusted_proxies)
    return "\n".join(f'    "{network.network_address}"/{network.prefixlen};' for network in networks)


def _limit(limit: int, ban_s: float, minute_s: int) -> str:
    limit = min(limit, _MOST)
    size = max(_BUCKET, -(-limit // _BUCKET))
    sizes = [min(size, limit - counted) for counted in range(0, limit, size)]
    buckets = (
        f'vsthrottle.is_denied("{number} " + req.http.X-Edge-Minute, {size}, {(size + 1) * minute_s}s)'
        for number, size in enumerate(sizes)
    )
    return _piece(
        "limit",
        limit=str(limit),
        ban=f"{ban_s:.3f}s",
        forgotten=f"{2 * ban_s:.3f}s",  # a ban is over before it is
        minute_s=str(minute_s),
        exhausted="\n            && ".join(buckets),
    )
