"""The settings as a configuration of Varnish."""

from importlib.resources import files
from ipaddress import ip_address, ip_network
from string import Template
from typing import Final

from lookout.base.url import format_host_port, host_and_port
from lookout.config.settings import Settings
from lookout.documents.api import CORS, PREFLIGHT_HEADERS, Headers, paths

_MINUTE_S: Final = 60
_BUCKET: Final = 12  # requests of a caller that one bucket counts
_LONGEST_OWN: Final = 110  # characters of a path of the operator's own
_RETRY_S: Final = 30
_CODINGS: Final = {"other": r"\*", "gzip": "gzip", "identity": "identity"}
_MOST: Final = 10**9  # requests in a minute; Varnish reads no number of more than 15 digits

# Of varnishd itself. The server takes heads of 32 KiB. A workspace holds one, and copies of the parts that are changed.
_PARAMETERS: Final = {
    "http_gzip_support": "off",  # the server has both forms; Varnish would take a weak tag for its own
    "http_max_hdr": "128",  # five of them are the first line, and some are added here
    "http_req_hdr_len": "31k",
    "http_req_size": "31k",
    "workspace_client": "256k",
    "workspace_backend": "128k",
    "idle_send_timeout": "30",  # a reader that does not read (A16)
    "send_timeout": "30",
    "timeout_idle": "30",  # one that does not ask, or not to the end
    # Its log is a file: it is to hold nothing about callers (A14).
    "vsl_mask": "-SessOpen,-Proxy,-ReqStart,-ReqHeader,-ReqUnset,-BereqHeader,-BereqUnset",
}


def parameters(**others: str) -> list[str]:
    """How varnishd is to be started with that configuration: these options, beside where it listens and what memory it
    has. Tests replace some by ``others``."""
    return [word for name, value in (_PARAMETERS | others).items() for word in ("-p", f"{name}={value}")]


class OriginError(Exception):
    """There is no server that the edge could ask; the text says which key to change."""


def origin_of(settings: Settings) -> str:
    """The server that the edge asks: ``edge.origin``, or else the server of these settings, on this machine."""
    origin = settings.edge.origin or _reachable(settings.server.listen)
    if host_and_port(origin)[1] == 0:
        key = "edge.origin" if settings.edge.origin else "server.listen"
        raise OriginError(f"{key}: no server answers at port 0; set edge.origin to the HOST:PORT of the server")
    return origin


def _reachable(listen: str) -> str:
    host, port = host_and_port(listen)
    try:
        address = ip_address(host)
    except ValueError:  # a name
        return listen
    return format_host_port("127.0.0.1" if address.version == 4 else "::1", port) if address.is_unspecified else listen


class _Piece(Template):
    """VCL has a use for the dollar sign, but none for this."""

    delimiter = "@"


def configuration(settings: Settings, minute_s: int = _MINUTE_S) -> str:
    """VCL for Varnish 7 with varnish-modules. Tests shorten ``minute_s``."""
    server = settings.server
    origin = origin_of(settings)
    host, port = host_and_port(origin)
    live, history = paths(settings.protocol)
    pieces = [_piece("origin", host=host, port=str(port), authority=origin)]
    if server.trusted_proxies:
        networks = (ip_network(proxy, strict=False) for proxy in server.trusted_proxies)
        lines = (f'    "{network.network_address}"/{network.prefixlen};' for network in networks)
        pieces.append(_piece("proxies", networks="\n".join(lines)))
    pieces.append(_piece("routes", live=live, history=history, longest=str(max(len(history), _LONGEST_OWN))))
    if server.rate_limit_per_minute:
        pieces.append(_limit(server.rate_limit_per_minute, server.ban_s, minute_s))
    pieces.append(_piece("preflight", headers=_headers("resp", PREFLIGHT_HEADERS)))
    weights = {name: _piece("weight", coding=name, pattern=pattern).rstrip() for name, pattern in _CODINGS.items()}
    pieces.append(_piece("coding", **weights))
    pieces.append(_piece("conditional"))
    cors, backend_cors = _headers("resp", CORS), _headers("beresp", CORS)
    pieces.append(_piece("cache", retry_s=str(_RETRY_S), headers=cors, backend_headers=backend_cors))
    return "".join(pieces)


def _headers(answer: str, headers: Headers) -> str:
    return "\n".join(f'        set {answer}.http.{name} = "{text}";' for name, text in headers)


def _piece(name: str, **values: str) -> str:
    return _Piece(files(__package__).joinpath(f"{name}.vcl").read_text(encoding="utf-8")).substitute(values)


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
