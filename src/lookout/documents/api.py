"""The API as HTTP, the same at a server and at the edge: paths, methods, and headers for scripts of other origins."""

from typing import Final

Headers = tuple[tuple[str, str], ...]

ALLOWED_METHODS: Final = "GET, HEAD, OPTIONS"

# What scripts of other origins may read (A6) and send (A7).
CORS: Final[Headers] = (("access-control-allow-origin", "*"), ("access-control-expose-headers", "ETag"))

PREFLIGHT_HEADERS: Final[Headers] = (
    *CORS,
    ("allow", ALLOWED_METHODS),
    ("access-control-allow-methods", ALLOWED_METHODS),
    ("access-control-allow-headers", "Accept, Content-Type, If-None-Match"),
    ("access-control-max-age", "86400"),
)


def paths(protocol: str) -> tuple[str, str]:
    """The paths of the live report and the history (A1)."""
    return f"/api/v1/{protocol}/liveness", f"/api/v1/{protocol}/liveness/history"
