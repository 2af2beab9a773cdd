"""Addresses to listen on."""

import os
import socket


class ListenError(Exception):
    """The address cannot be listened on; the text says which and why."""


def host_and_port(address: str) -> tuple[str, int]:
    """Of ``HOST:PORT``, where an IPv6 host stands in brackets."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def free(address: str) -> tuple[str, int]:
    """The numeric address and the port, after a look that nobody listens there: workers share their port, and would
    share it with another server's workers as well. Port 0 is one that is free."""
    host, port = host_and_port(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.create_server((host, port), family=family) as listener:
            bound_host, bound_port, *_ = listener.getsockname()
    except OSError as error:
        raise ListenError(f"{address}: {_why(error)}") from None
    return bound_host, bound_port


def _why(error: OSError) -> str:
    """The system's words alone: the library adds the address to them. Errors of names have no number of the system."""
    if isinstance(error, socket.gaierror) or error.errno is None:
        return str(error.strerror)
    return os.strerror(error.errno)
