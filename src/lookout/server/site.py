"""The operator's own routes beside the two endpoints: the page, feeds and badges, schemas, the description (E1, V3)."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from lookout.base.logger import get_logger
from lookout.documents.api import Headers, paths
from lookout.documents.reports import build_schemas
from lookout.public import about
from lookout.public.about import Description
from lookout.public.feeds import JSON, FeedFiles, File, make_feed_files
from lookout.public.page import html
from lookout.public.page.assets import EMBED_PATH, JAVASCRIPT, encode_badge
from lookout.public.picture import Names
from lookout.server.replies import NO_LIVE, Resource, convenience_resource

PAGE_CACHING: Final = "no-cache"
# A picture or a feed, opened as a page, runs and loads nothing.
_SEALED: Final[Headers] = (("content-security-policy", "default-src 'none'"),)


class TimedReplies(NamedTuple):
    """Replies that time makes untrue: to be rebuilt after ``holds_ms``, unless that is None. ``later`` builds rarely
    requested ones on demand."""

    ready: Mapping[str, Resource]
    later: Callable[[str], Resource | None]
    holds_ms: int | None


NO_TIMED_REPLIES: Final = TimedReplies({}, lambda _: None, None)

# Builds replies from both documents' bytes, the instant, and the time since the live report arrived.
Feeds = Callable[[bytes | None, bytes | None, int, int], TimedReplies]


class Site(NamedTuple):
    """The two endpoints' paths, constant replies, and the builder of replies that time makes untrue, called after every
    publication and when they expire."""

    paths: tuple[str, str]
    others: Mapping[str, Resource] = MappingProxyType({})
    feeds: Feeds = lambda *_: NO_TIMED_REPLIES


class ReplyTable(dict[str, Resource]):
    """Replies by path. A reply from ``later`` is built once per table."""

    def __init__(self, ready: Mapping[str, Resource], later: Callable[[str], Resource | None]) -> None:
        super().__init__(ready)
        self._later = later

    def __missing__(self, path: str) -> Resource:
        found = self._later(path)
        if found is None:
            raise KeyError(path)
        self[path] = found
        return found


def make_timed_replies(made: FeedFiles) -> TimedReplies:
    """Replies with the status for other tools; no copy is used for longer than it is true."""

    def resource(file: File) -> Resource:
        caching = f"public, max-age={made.max_age_s}, must-revalidate"
        return convenience_resource(file.media_type, file.body, *_SEALED, caching=caching)

    def later(path: str) -> Resource | None:
        file = made.badge_of_row(path) or made.feed_of_chain(path)
        return None if file is None else resource(file)

    ready = {path: NO_LIVE if file is None else resource(file) for path, file in made.files.items()}
    return TimedReplies(ready, later, made.holds_ms)


# The page loads nothing from other origins, runs only its own script, and is shown in no frame.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_GUARDS: Final[Headers] = (
    ("content-security-policy", _POLICY),
    ("referrer-policy", "no-referrer"),
)

log = get_logger()


def build_site(protocol: str, description: Description, assets: dict[str, Resource]) -> Site:
    live_path, history_path = paths(protocol)
    names = Names(protocol, description.read())

    def make_replies(live: bytes | None, history: bytes | None, now: int, received_ago_ms: int) -> TimedReplies:
        """The page, the feeds, and the description with the notes of the history's time and later."""
        made = make_timed_replies(make_feed_files(names, live, history, now, received_ago_ms))
        current = description.drop_old_notes(now)
        page = html.render(live, live_path, history_path, current, now, received_ago_ms)
        shown = convenience_resource("text/html; charset=utf-8", page, *_GUARDS, caching=PAGE_CACHING)
        return made._replace(ready={**made.ready, **_about_route(current), "/": shown})

    described = build_description_routes(protocol, replace(description, notes=[]))
    others = described | build_embed_route(encode_badge(description)) | assets
    return Site((live_path, history_path), others, make_replies)


def build_stored_site(protocol: str, own: Description, assets: dict[str, Resource], stored: bytes) -> Site:
    """The site of the stored description, or of this server's own if that cannot be read."""
    try:
        monitors = msgspec.json.decode(stored, type=Description)
    except (ValueError, RecursionError):  # ValueError: not of the type, not JSON, or not UTF-8
        log.warning("the stored description of the deployment cannot be read; that of this server's file is served")
        return build_site(protocol, own, assets)
    return build_site(protocol, own.follow_monitor(monitors), assets)


def build_description_routes(protocol: str, description: Description) -> dict[str, Resource]:
    """Both schemas, the OpenAPI description, in which ``make schemas`` left a gap for the protocol, and the
    deployment's description."""
    bodies = {f"/schemas/{name}.json": msgspec.json.encode(schema) for name, schema in build_schemas().items()}
    template = files(__package__).joinpath("openapi.json").read_bytes()
    bodies["/openapi.json"] = template.replace(b"{protocol}", protocol.encode())
    return {path: convenience_resource(JSON, body) for path, body in bodies.items()} | _about_route(description)


def _about_route(description: Description) -> dict[str, Resource]:
    return {about.PATH: _build_about(description.encode())}


@lru_cache(2)  # requested with every publication, and seldom different
def _build_about(body: bytes) -> Resource:
    return convenience_resource(JSON, body, caching=PAGE_CACHING)  # a reload or a note may change it


def build_asset_routes(files: Mapping[str, tuple[str, bytes]]) -> dict[str, Resource]:
    """The status page's files: media type and content by path."""
    return {path: convenience_resource(media_type, body, *_GUARDS) for path, (media_type, body) in files.items()}


def build_embed_route(body: bytes) -> dict[str, Resource]:
    """The badge for other sites, also for those that isolate themselves from other origins."""
    script = convenience_resource(JAVASCRIPT, body, ("cross-origin-resource-policy", "cross-origin"))
    return {EMBED_PATH: script}
