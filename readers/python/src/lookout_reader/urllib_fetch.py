"""Requests over HTTP with the standard library alone."""

import contextlib
import errno
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import IO, Any, Final, ParamSpec, TypeVar
from urllib.parse import urlsplit

from lookout_reader.feed import BODIES_MOST, TIMED_OUT, TOO_LONG, Answer, NoAnswer

_BODY_MOST: Final = max(BODIES_MOST.values())
_CHUNK: Final = 65_536
# Why a certificate is not accepted, by OpenSSL's number; and what it says of something that is no TLS.
CERTIFICATES: Final = {
    9: "not yet valid",
    10: "expired",
    18: "self-signed",
    19: "unknown authority",
    20: "unknown authority",
    21: "unknown authority",
    62: "wrong name",
    64: "wrong name",
}
NOT_TLS: Final = ("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=HTTPConnection)


def fetch_with_urllib(url: str, headers: Mapping[str, str], timeout_s: float = 10.0) -> Answer | NoAnswer:
    """One request, which ends within ``timeout_s``, whatever is slow."""
    connections = _Connections()
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - poll takes http and https only
    asked = in_a_thread(_ask, request, timeout_s, connections)
    if wait([asked], timeout_s).done:
        return asked.result()
    connections.break_off()  # so that the thread ends too
    return TIMED_OUT


def in_a_thread(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """The result of a call in its own daemon thread, which does not keep the program from ending."""
    future = Future[T]()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = call(*args, **kwargs)
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is asked for
            future.set_exception(raised)
        else:
            future.set_result(result)

    try:
        threading.Thread(target=run, name="lookout-reader", daemon=True).start()
    except RuntimeError as failed:  # no more threads
        future.set_exception(failed)
    return future


def explain_failure(error: object) -> str:
    """Why there is no answer, if known."""
    match error:
        case ssl.SSLCertVerificationError(verify_code=code):
            return f"not reached: no secure connection ({CERTIFICATES.get(code, 'certificate not accepted')})"
        case ssl.SSLError(reason=reason):
            return f"not reached: no secure connection ({'not TLS' if reason in NOT_TLS else 'handshake failed'})"
        case socket.gaierror():
            return "not reached: its name could not be resolved"
        case ConnectionRefusedError():
            return "not reached: nothing listens at its address"
        case ConnectionResetError():
            return "no answer: the connection was reset"
        case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH):
            return "not reached: the network did not let the connection through"
        case _:
            return NoAnswer().problem


class _TooLongError(Exception):
    pass


class _Connections:
    """The connections of one request, each redirect's too, so that another thread can break them off.

    It keeps a duplicate descriptor of every connection from the start: a proxy can be as slow as an answer, and TLS
    takes over the first descriptor.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._broken_off = False

    def open(self, *args: Any) -> socket.socket:
        connected = socket.create_connection(*args)
        with self._lock:
            if self._broken_off:
                connected.close()
                raise TimeoutError
            self._sockets.append(connected.dup())
        return connected

    def break_off(self) -> None:
        with self._lock:
            self._broken_off = True
            for connected in self._sockets:
                with contextlib.suppress(OSError):
                    connected.shutdown(socket.SHUT_RDWR)  # a reader that waits is woken

    def close(self) -> None:
        with self._lock:
            while self._sockets:
                self._sockets.pop().close()

    def http(self, *args: Any, **kwargs: Any) -> HTTPConnection:
        return self._track(HTTPConnection(*args, **kwargs))

    def https(self, *args: Any, **kwargs: Any) -> HTTPSConnection:
        return self._track(HTTPSConnection(*args, **kwargs))

    def _track(self, connection: C) -> C:
        vars(connection)["_create_connection"] = self.open  # http.client's own hook for tests
        return connection


class _Http(urllib.request.HTTPHandler):
    def __init__(self, connections: _Connections) -> None:
        super().__init__()
        self._connections = connections

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._connections.http, req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, connections: _Connections) -> None:
        super().__init__()
        self._connections = connections

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._connections.https, req)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects only to the same host, and never from https to http."""

    # The parameters are urllib's.
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        scheme, host = urlsplit(newurl).scheme, urlsplit(newurl).hostname
        if host != urlsplit(req.full_url).hostname:
            raise urllib.error.URLError("a redirect to another host")
        if req.type == "https" and scheme != "https":
            raise urllib.error.URLError("a redirect from https to something else")
        if scheme not in ("http", "https"):  # a proxy from the environment would get any scheme
            raise urllib.error.URLError("a redirect to neither http nor https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(connections: _Connections) -> urllib.request.OpenerDirector:
    """An opener for http and https alone: a redirect may name any scheme."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        _Http(connections),
        _Https(connections),
        _Redirects(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _ask(request: urllib.request.Request, timeout_s: float, connections: _Connections) -> Answer | NoAnswer:
    try:
        with _opener(connections).open(request, timeout=timeout_s) as response:
            return _answer(response.status, response.headers, _read(response))
    except urllib.error.HTTPError as answered:  # urllib's name for any code but success, also 304
        with answered:
            return _answer(answered.code, answered.headers, b"")
    except _TooLongError:
        return TOO_LONG
    except TimeoutError:
        return TIMED_OUT
    except urllib.error.URLError as failed:
        return TIMED_OUT if isinstance(failed.reason, TimeoutError) else NoAnswer(explain_failure(failed.reason))
    except (OSError, HTTPException, ValueError) as failed:  # a captive portal may redirect to an invalid address
        return NoAnswer(explain_failure(failed))
    finally:
        connections.close()


def _read(response: HTTPResponse) -> bytes:
    parts: list[bytes] = []
    length = 0
    while part := response.read1(_CHUNK):
        parts.append(part)
        length += len(part)
        if length > _BODY_MOST:
            raise _TooLongError
    if response.length:  # read1 does not detect a truncated body
        raise IncompleteRead(b"".join(parts), response.length)
    return b"".join(parts)


def _answer(http_code: int, headers: Message, body: bytes) -> Answer:
    return Answer(
        http_code,
        body,
        etag=headers.get("ETag"),
        retry_after=headers.get("Retry-After"),
        date=headers.get("Date"),
        age=headers.get("Age"),
    )
