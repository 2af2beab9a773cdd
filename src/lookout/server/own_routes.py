"""The operator's own routes beside the API (E1, V3)."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

import msgspec

from lookout.documents.document import Headers
from lookout.documents.reports import build_schemas
from lookout.public import about
from lookout.public.about import Description
from lookout.public.feeds import JSON
from lookout.public.page.assets import EMBED_PATH, JAVASCRIPT
from lookout.server.replies import PAGE_CACHING, Resource, convenience_resource

# The page loads nothing from anyone else, runs no script but its own, and is shown in nobody's frame.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUARDS: Final[Headers] = (
    ("content-security-policy", _POLICY),
    ("referrer-policy", "no-referrer"),
)


def build_description_routes(protocol: str, description: Description) -> dict[str, Resource]:
    """Both schemas, the OpenAPI description, which ``make schemas`` wrote with a gap for the protocol, and that of this
    deployment."""
    bodies = {f"/schemas/{name}.json": msgspec.json.encode(schema) for name, schema in build_schemas().items()}
    template = files(__package__).joinpath("openapi.json").read_bytes()
    bodies["/openapi.json"] = template.replace(b"{protocol}", protocol.encode())
    return {path: convenience_resource(JSON, body) for path, body in bodies.items()} | build_about_route(description)


def build_about_route(description: Description) -> dict[str, Resource]:
    """How this deployment describes itself."""
    return {about.PATH: _build_about(description.encode())}


@lru_cache(2)  # it is asked for with every publication, and seldom another one
def _build_about(body: bytes) -> Resource:
    return convenience_resource(JSON, body, caching=PAGE_CACHING)  # a reload or a note may change it


def build_asset_routes(files: Mapping[str, tuple[str, bytes]]) -> dict[str, Resource]:
    """What the status page loads: media type and content by path."""
    return {path: convenience_resource(media_type, body, *_GUARDS) for path, (media_type, body) in files.items()}


def build_embed_route(body: bytes) -> dict[str, Resource]:
    """The badge for other sites, which also those may load that keep everything out that does not say so."""
    script = convenience_resource(JAVASCRIPT, body, ("cross-origin-resource-policy", "cross-origin"))
    return {EMBED_PATH: script}


def build_status_page(body: bytes) -> Resource:
    return convenience_resource("text/html; charset=utf-8", body, *_GUARDS, caching=PAGE_CACHING)
