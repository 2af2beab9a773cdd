"""Builds what answers requests: the replies that are ready, and who renews them."""

from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lookout.base.clock import SystemClock
from lookout.base.logger import get_logger
from lookout.config.tables import ServerSettings
from lookout.documents.document import paths
from lookout.public.about import Description
from lookout.public.feeds import make_feed_files
from lookout.public.page import html
from lookout.public.page.assets import encode_badge, load_assets
from lookout.public.picture import Names
from lookout.server.callers import Callers
from lookout.server.own_routes import (
    build_about_route,
    build_asset_routes,
    build_description_routes,
    build_embed_route,
    build_status_page,
)
from lookout.server.poller import Poller
from lookout.server.replies import Resource, TimedReplies, make_timed_replies
from lookout.server.responder import Responder
from lookout.server.shared import Limiter, OwnCounts
from lookout.server.site import Site
from lookout.store.kinds import kind_of

log = get_logger("server")


def build_responder(
    settings: ServerSettings, folder: Path, callers: Callers, limiter: Limiter | None, counts: OwnCounts
) -> Responder:
    clock = SystemClock()
    assets = build_asset_routes(load_assets())
    poller = Poller(
        kind_of(settings.store_url).open_reader(settings.store_url, folder, settings.store_key),
        clock,
        round(settings.server.history_unreadable_s * 1000),
        build_site(settings.protocol, settings.description, assets),
        partial(_build_described_site, settings.protocol, settings.description, assets),
    )
    return Responder(poller, callers, limiter, counts, clock)


def build_site(protocol: str, description: Description, assets: dict[str, Resource]) -> Site:
    live_path, history_path = paths(protocol)
    names = Names(protocol, description.read())

    def make_replies(live: bytes | None, history: bytes | None, now: int, received_ago_ms: int) -> TimedReplies:
        """The page, the feeds, and the description with the notes that are not over."""
        made = make_timed_replies(make_feed_files(names, live, history, now, received_ago_ms))
        current = description.drop_past_notes(now)
        page = html.render(live, live_path, history_path, current, now, received_ago_ms)
        return made._replace(ready={**made.ready, **build_about_route(current), "/": build_status_page(page)})

    return Site(
        (live_path, history_path),
        build_description_routes(protocol, replace(description, notes=[]))
        | build_embed_route(encode_badge(description))
        | assets,
        make_replies,
    )


def _build_described_site(protocol: str, description: Description, assets: dict[str, Resource], about: bytes) -> Site:
    try:
        stored = msgspec.json.decode(about, type=Description)
    except (ValueError, RecursionError):  # ValueError: not of the type, not JSON, or not UTF-8
        log.warning("the stored description of the deployment cannot be read; that of this server's file is served")
        return build_site(protocol, description, assets)
    return build_site(protocol, description.follow_monitor(stored), assets)
