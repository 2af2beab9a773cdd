"""The way out: Apprise, which knows how to reach a hundred kinds of services.

It is loaded by who sends or checks an address, and by nobody else. It logs addresses, and so is not let.
"""

import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

from lookout.alerts.messages import Words

if TYPE_CHECKING:
    import apprise

_TIMEOUT_S: Final = 10.0  # to connect, and for each part of an answer


class NotAcceptedError(Exception):
    """The target did not take the message; why is not told, since it may hold the address."""


class Way(Protocol):
    """To one target; slow."""

    def __call__(self, words: Words, /) -> None:
        """Send. NotAcceptedError if it was not accepted."""


def is_installed() -> bool:
    return find_spec("apprise") is not None


def recipients(address: str) -> int:
    """To how many Apprise would send; 0 if it does not understand the address."""
    addresses = address.partition("?")[0].count("://")
    if addresses > 1:
        return addresses
    target = _target(address)
    return 0 if target is None else max(1, len(target))


def way_to(address: str) -> Way:
    """How to send to an address that is understood."""
    import apprise

    target = _target(address)
    if target is None:
        raise ValueError("not an address that Apprise understands")
    out = apprise.Apprise()
    out.add(target)

    def send(words: Words, /) -> None:
        # Some services drop what is neither good nor bad, and a pager does not ring for it.
        kind = apprise.NotifyType.SUCCESS if words.is_over else apprise.NotifyType.FAILURE
        if not out.notify(words.body, words.title, kind, body_format=apprise.NotifyFormat.TEXT):
            raise NotAcceptedError

    return send


def _target(address: str) -> "apprise.NotifyBase | None":
    import apprise
    import urllib3

    for library in ("apprise", "urllib3"):
        logging.getLogger(library).disabled = True
    urllib3.disable_warnings()  # of a certificate that the address says not to check, each time
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
        target.overflow_mode = apprise.OverflowMode.SPLIT  # what is too long for one of theirs comes in several
    return target
