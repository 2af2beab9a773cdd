"""What a server serves beside the two documents, as the deployment is described: the operator's own routes (E1, V3)."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

import msgspec
from msgspec.structs import replace

from lookout.base.logger import get_logger
from lookout.documents.document import Headers, paths
from lookout.documents.reports import build_schemas
from lookout.public import about
from lookout.public.about import Description
from lookout.public.feeds import JSON, make_feed_files
from lookout.public.page import html
from lookout.public.page.assets import EMBED_PATH, JAVASCRIPT, encode_badge
from lookout.public.picture import Names
from lookout.server.replies import (
    PAGE_CACHING,
    Resource,
    Site,
    TimedReplies,
    convenience_resource,
    make_timed_replies,
)

# The page loads nothing from anyone else, runs no script but its own, and is shown in nobody's frame.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUARDS: Final[Headers] = (
    ("content-security-policy", _POLICY),
    ("referrer-policy", "no-referrer"),
)

log = get_logger("server")


def build_site(protocol: str, description: Description, assets: dict[str, Resource]) -> Site:
    live_path, history_path = paths(protocol)
    names = Names(protocol, description.read())

    def make_replies(live: bytes | None, history: bytes | None, now: int, received_ago_ms: int) -> TimedReplies:
        """The page, the feeds, and the description with the notes that are not over."""
        made = make_timed_replies(make_feed_files(names, live, history, now, received_ago_ms))
        current = description.drop_past_notes(now)
        page = html.render(live, live_path, history_path, current, now, received_ago_ms)
        return made._replace(ready={**made.ready, **_about_route(current), "/": build_status_page(page)})

    return Site(
        (live_path, history_path),
        build_description_routes(protocol, replace(description, notes=[]))
        | build_embed_route(encode_badge(description))
        | assets,
        make_replies,
    )


def build_stored_site(protocol: str, own: Description, assets: dict[str, Resource], stored: bytes) -> Site:
    """The site of the description in the store, or else of this server's own."""
    try:
        monitors = msgspec.json.decode(stored, type=Description)
    except (ValueError, RecursionError):  # ValueError: not of the type, not JSON, or not UTF-8
        log.warning("the stored description of the deployment cannot be read; that of this server's file is served")
        return build_site(protocol, own, assets)
    return build_site(protocol, own.follow_monitor(monitors), assets)


def build_description_routes(protocol: str, description: Description) -> dict[str, Resource]:
    """Both schemas, the OpenAPI description, which ``make schemas`` wrote with a gap for the protocol, and that of this
    deployment."""
    bodies = {f"/schemas/{name}.json": msgspec.json.encode(schema) for name, schema in build_schemas().items()}
    template = files(__package__).joinpath("openapi.json").read_bytes()
    bodies["/openapi.json"] = template.replace(b"{protocol}", protocol.encode())
    return {path: convenience_resource(JSON, body) for path, body in bodies.items()} | _about_route(description)


def _about_route(description: Description) -> dict[str, Resource]:
    return {about.PATH: _build_about(description.encode())}


@lru_cache(2)  # it is asked for with every publication, and seldom another one
def _build_about(body: bytes) -> Resource:
    return convenience_resource(JSON, body, caching=PAGE_CACHING)  # a reload or a note may change it


def build_asset_routes(files: Mapping[str, tuple[str, bytes]]) -> dict[str, Resource]:
    """What the status page loads: media type and content by path."""
    return {path: convenience_resource(media_type, body, *_GUARDS) for path, (media_type, body) in files.items()}


def build_embed_route(body: bytes) -> dict[str, Resource]:
    """The badge for other sites, also for those that isolate themselves from other origins."""
    script = convenience_resource(JAVASCRIPT, body, ("cross-origin-resource-policy", "cross-origin"))
    return {EMBED_PATH: script}


def build_status_page(body: bytes) -> Resource:
    return convenience_resource("text/html; charset=utf-8", body, *_GUARDS, caching=PAGE_CACHING)
