"""Sends messages with Apprise, which can reach a hundred kinds of services.

Apprise is loaded only to send, or to check an address. It logs addresses, so its log goes nowhere; only why a message
was not accepted is looked up in it.
"""

import logging
import re
import shlex
import sys
from contextvars import ContextVar
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from lookout.core.causes import CAUSES
from lookout.features.alerts.messages import Message

if TYPE_CHECKING:
    import apprise

# Into the environment that this runs in, whichever way that was made.
INSTALL: Final = f"{shlex.quote(sys.executable)} -m pip install 'apprise>=2.1'"
_TIMEOUT_S: Final = 10.0  # to connect, and for each part of an answer


# In what Apprise logs, and why that was: words without its own, which may hold the address.
_REASONS: Final = (
    (re.compile(r"error=(\d{3})\b"), "HTTP {}"),
    (re.compile(r"Socket Exception: \((\d{3}), "), "SMTP {}"),
    (re.compile(r"Failed to resolve|Name or service not known|Temporary failure in name"), CAUSES["dns"].words),
    (re.compile(r"Connection refused"), CAUSES["refused"].words),
    (re.compile(r"SSLError|SSL:|CERTIFICATE"), CAUSES["tls"].words),
    (re.compile(r"timed out|Timeout"), "no answer in time"),
)
_logged: ContextVar[list[str] | None] = ContextVar("logged", default=None)  # of the message that is being sent


class _Listener(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        lines, line = _logged.get(), record.getMessage()
        if lines is not None and (record.levelno >= logging.WARNING or line.startswith("Socket Exception")):
            lines.append(line)


class NotAcceptedError(Exception):
    """The target did not take the message; the text says why, without its address, and is empty if that is unknown."""


class Sender(Protocol):
    """Sends to one target, and blocks."""

    def __call__(self, message: Message, /) -> None:
        """NotAcceptedError if the target refused the message."""


def is_installed() -> bool:
    return find_spec("apprise") is not None


def count_recipients(address: str) -> int:
    """The number of recipients; 0 if Apprise does not understand the address."""
    addresses = address.partition("?")[0].count("://")
    if addresses > 1:
        return addresses
    target = _parse_address(address)
    return 0 if target is None else max(1, len(target))


def open_sender(address: str) -> Sender:
    """A sender to an address that Apprise understands."""
    import apprise
    from apprise.plugins.custom_json import NotifyJSON

    target = _parse_address(address)
    if target is None:
        raise ValueError("not an address that Apprise understands")
    out = apprise.Apprise()
    out.add(target)

    def send(message: Message, /) -> None:
        if isinstance(target, NotifyJSON) and message.event is not None:
            target.payload_extras["lookout"] = msgspec.to_builtins(message.event)
        # Some services drop neutral messages, and a pager does not ring for them.
        kind = apprise.NotifyType.SUCCESS if message.is_over else apprise.NotifyType.FAILURE
        lines = list[str]()
        token = _logged.set(lines)
        try:
            is_accepted = out.notify(message.body, message.title, kind, body_format=apprise.NotifyFormat.TEXT)
        finally:
            _logged.reset(token)
        if not is_accepted:
            raise NotAcceptedError(_find_reason("\n".join(lines)))

    return send


def _find_reason(logged: str) -> str:
    found = ((pattern.search(logged), words) for pattern, words in _REASONS)
    return next((words.format(*match.groups()) for match, words in found if match), "")


def _parse_address(address: str) -> "apprise.NotifyBase | None":
    import apprise
    import urllib3

    logging.getLogger("urllib3").disabled = True
    log = logging.getLogger("apprise")
    log.handlers, log.propagate = [_Listener()], False
    log.setLevel(logging.DEBUG)
    urllib3.disable_warnings()  # repeated warnings about a certificate that the address says not to check
    target = apprise.Apprise.instantiate(
        address.strip(), asset=apprise.AppriseAsset(async_mode=False), suppress_exceptions=True
    )
    if not isinstance(target, apprise.NotifyBase):
        return None
    if "cto=" not in address:
        target.socket_connect_timeout = _TIMEOUT_S
    if "rto=" not in address:
        target.socket_read_timeout = _TIMEOUT_S
    if "overflow=" not in address:
        target.overflow_mode = apprise.OverflowMode.SPLIT  # a text too long for the service is sent in parts
    return target
