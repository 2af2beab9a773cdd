"""Small documents as examples, made as the real ones are."""

from typing import Final

from lookout.base.instants import parse_instant
from lookout.config.tables import HistoryTable
from lookout.core.history import HistoryRow, HistoryView, Uptime
from lookout.core.model import Check, Metrics, Reason, Report, Row, Status, unmonitored
from lookout.core.services import SERVICES
from lookout.documents.document import Document
from lookout.documents.reports import history_document, live_document
from lookout.public.about import (
    ChainDescription,
    Description,
    DissentDescription,
    NoteDescription,
    PlaceDescription,
    ServiceDescription,
)
from lookout.public.feeds import FeedFiles, make_feed_files
from lookout.public.picture import Names

_PUBLISHED_AT: Final = parse_instant("2026-11-05T14:02:11.480Z")
_OBSERVED_AT: Final = _PUBLISHED_AT - 4_210
_EXPIRES_AT: Final = _OBSERVED_AT + 150_000
_TO_AT: Final = parse_instant("2026-11-05T14:00:00.000Z")
_FROM_AT: Final = _TO_AT - 2 * 3_600_000

_MESSAGING: Final = Check("messaging", None)
_PPOI: Final = Check("ppoi", 1)
_BROADCASTERS: Final = Check("broadcasters", 1)
_INDEXER: Final = Check("indexer", 1)
_HOSTED: Final = Check("hosted-indexer", 11155111)


def build_live_example() -> Document:
    rows = (
        _answered(_MESSAGING, "current", "responding", Metrics(peers=14)),
        _answered(_PPOI, "current", "synced", Metrics(position=184213, head=184213)),
        _answered(_BROADCASTERS, "degraded", "partial-coverage", Metrics(responding=4, monitored=5)),
        Row(_INDEXER, "unavailable", "unreachable", _OBSERVED_AT, _OBSERVED_AT - 600_000, _EXPIRES_AT),
        unmonitored(_HOSTED),
    )
    return live_document(Report(_PUBLISHED_AT, rows))


def build_history_example() -> Document:
    rows = (
        HistoryRow(_MESSAGING, "c" * 25, Uptime(1.0, 1.0, 1.0)),
        HistoryRow(_PPOI, "c" * 13 + "k" + "c" * 11, Uptime(0.96, 0.96, 0.96)),
        HistoryRow(_BROADCASTERS, "c" * 20 + "ddccd", Uptime(0.88, 0.88, 0.88)),
        HistoryRow(_INDEXER, "-" * 12 + "??" + "c" * 7 + "kkuu", Uptime(None, None, None)),
        HistoryRow(_HOSTED, "." * 25, Uptime(None, None, None)),
    )
    return history_document(HistoryView(_PUBLISHED_AT, HistoryTable().span(), _FROM_AT, _TO_AT, rows))


def build_about_example() -> Description:
    chains = (ChainDescription(1, "Ethereum"), ChainDescription(11155111, "Sepolia", test_network=True))
    services = tuple(ServiceDescription(each.name, each.title) for each in SERVICES)
    page = ("Example Wallet", "Example Ltd", "https://example.com/contact")
    return Description("protocol", chains, services, *page, notes=[build_note_example()], places=build_places_example())


def build_places_example() -> tuple[PlaceDescription, ...]:
    dissent = DissentDescription("indexer", 1, "current", "2026-11-05T13:58:00Z")
    return (
        PlaceDescription(name="Frankfurt", own=True, differs=()),
        PlaceDescription(name="Singapore", url="https://sg.example.com", differs=(dissent,)),
        PlaceDescription(name="São Paulo", silent_since="2026-11-05T13:40:00Z", differs=()),
    )


def build_note_example() -> NoteDescription:
    return NoteDescription(
        id="1",
        text="Planned maintenance of the squid on Polygon",
        services=("indexer",),
        chains=(137,),
        from_="2026-11-17T14:00:00Z",
        until="2026-11-17T16:00:00Z",
        added_at="2026-11-16T09:12:40Z",
    )


def build_feeds_example() -> FeedFiles:
    names = Names("protocol", build_about_example().read())
    return make_feed_files(names, build_live_example().body, build_history_example().body, _PUBLISHED_AT, 0)


def _answered(check: Check, status: Status, reason: Reason, metrics: Metrics) -> Row:
    return Row(check, status, reason, _OBSERVED_AT, _OBSERVED_AT, _EXPIRES_AT, metrics)
