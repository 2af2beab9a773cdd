"""Why a request failed, in our own words: the text of an error or of an answer may hold a secret (M16)."""

import errno
import ssl
import zlib
from http import HTTPStatus
from typing import Final

import aiohttp
from yarl import URL

from lookout.protocols.client.failure import HttpCodeFailed, ProbeFailed, ProxyRefusedFailed
from lookout.protocols.client.request import STAGE, Request

# OpenSSL's codes of what is wrong with a certificate.
_CERTIFICATES: Final = {
    9: "not yet valid",
    10: "expired",
    18: "self-signed",
    19: "unknown authority",
    20: "unknown authority",
    21: "unknown authority",
    62: "wrong name",
    64: "wrong name",
}
_NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")


def explain_refusal(response: aiohttp.ClientResponse, request: Request) -> HttpCodeFailed:
    """Another HTTP code than the expected one."""
    http_code = response.status
    if http_code == HTTPStatus.TOO_MANY_REQUESTS:
        return HttpCodeFailed(http_code, "rate_limited")
    location = response.headers.get("Location")
    if 300 <= http_code < 400 and location is not None:
        return HttpCodeFailed(http_code, "redirect", describe_target(location, request))
    return HttpCodeFailed(http_code)


def describe_target(location: str, request: Request) -> str:
    """Where a redirect leads, in our words: a host in an upstream's text may hold what was sent to it."""
    try:
        asked = URL(request.url)
        target = asked.join(URL(location))
    except ValueError:
        return ""
    if target.raw_host != asked.raw_host or target.scheme not in ("http", "https"):
        return " to another host"
    return " to the same host" if target.scheme == asked.scheme else f" to {target.scheme}"


def explain_error(error: Exception, request: Request) -> ProbeFailed:
    match error:
        case aiohttp.ClientHttpProxyError():
            return ProxyRefusedFailed(error.status)
        case _:
            failure = _explain(error, is_tls=request.url.startswith("https:"))
            # Before there is a connection through the proxy; but for TLS, which is with the upstream.
            is_of_proxy = request.access.proxy and STAGE.get() == "connect" and failure.cause != "tls"
            return ProbeFailed("proxy", failure.reason) if is_of_proxy else failure


def _explain(error: Exception, *, is_tls: bool) -> ProbeFailed:
    match error:
        case aiohttp.ClientConnectorDNSError():
            return ProbeFailed("dns")
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as refused):
            return ProbeFailed("tls", _CERTIFICATES.get(refused.verify_code, "certificate not accepted"))
        case aiohttp.ClientConnectorSSLError(os_error=ssl.SSLError(reason=reason)) if reason in _NOT_TLS:
            return ProbeFailed("tls", "not TLS")
        case aiohttp.ClientConnectorError(os_error=ConnectionResetError() | ConnectionAbortedError()):
            return ProbeFailed("tls", "handshake failed") if is_tls else ProbeFailed("reset")
        case aiohttp.ClientSSLError():
            return ProbeFailed("tls", "handshake failed")
        case aiohttp.InvalidURL():
            return ProbeFailed("bad_address")
        case aiohttp.ServerDisconnectedError():
            return ProbeFailed("closed")
        case aiohttp.ClientPayloadError():
            return ProbeFailed("broken_off")
        case zlib.error():
            return ProbeFailed("bad_encoding")
        case OSError():
            return _explain_connection(error.errno)
        case _:
            return ProbeFailed("bad_http")


def _explain_connection(code: int | None) -> ProbeFailed:
    match code:
        case errno.ECONNREFUSED:
            return ProbeFailed("refused")
        case errno.ECONNRESET | errno.EPIPE:
            return ProbeFailed("reset")
        case errno.ETIMEDOUT:
            return ProbeFailed("timeout", STAGE.get())
        case _:
            return ProbeFailed("network", "" if code is None else errno.errorcode.get(code, ""))
