"""What a script of any origin may ask and read (A6, A7): the same headers from the server and from the edge."""

from typing import Final

Headers = tuple[tuple[str, str], ...]

ALLOWED_METHODS: Final = "GET, HEAD, OPTIONS"

# On every answer of the API (A6), so that a script of any origin can read it, and the ETag with it.
CORS: Final[Headers] = (("access-control-allow-origin", "*"), ("access-control-expose-headers", "ETag"))

PREFLIGHT_HEADERS: Final[Headers] = (
    *CORS,
    ("access-control-allow-methods", ALLOWED_METHODS),
    ("access-control-allow-headers", "Accept, Content-Type, If-None-Match"),
    ("access-control-max-age", "86400"),
)
