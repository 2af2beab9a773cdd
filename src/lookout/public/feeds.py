"""Everything that is made of the documents, by path, and for how long it stays true."""

from typing import Final, NamedTuple

from lookout.public import atom
from lookout.public.badges import draw_badge, encode_shield
from lookout.public.picture import EffectiveRow, Names, Picture, instant_text, note_edges, take_picture
from lookout.public.summary import encode_summaries
from lookout_reader.document import Check
from lookout_reader.rollup import worst_of
from lookout_reader.statuses import BY_WORD, EffectiveStatus
from lookout_reader.words import status_text

JSON: Final = "application/json; charset=utf-8"
SVG: Final = "image/svg+xml; charset=utf-8"
FEED: Final = atom.feed_path()
SUMMARY: Final = "/summary.json"
STATUS: Final = "/status.json"
BADGE: Final = "/badge"

# Seconds for which a copy may be kept. So that no copy outlives what it says, a number is given only while more seconds
# than that are left, plus one in transit.
MAX_AGES_S: Final = (30, 15, 7, 3, 1)


class File(NamedTuple):
    media_type: str
    body: bytes


class FeedFiles(NamedTuple):
    """``files`` by path, None where there is no report to make one of; the rows that have badges, by the badges' path
    without its ending; and the chains that have feeds, by the feed's path. All of it may be kept for ``max_age_s``, and
    has to be made again after ``holds_ms``, or never if that is None."""

    files: dict[str, File | None]
    rows: dict[str, EffectiveRow]
    chains: dict[str, int]
    picture: Picture | None
    names: Names
    max_age_s: int
    holds_ms: int | None

    def feed_of_chain(self, path: str) -> File | None:
        chain_id = self.chains.get(path)
        if chain_id is None or self.picture is None:
            return None
        return File(atom.MEDIA_TYPE, atom.encode_feed(self.picture, self.names, chain_id))

    def badge_of_row(self, path: str) -> File | None:
        """A badge of one row. There may be thousands, of which few are asked for: they are not among the files."""
        stem = path.rpartition(".")[0]
        row = self.rows.get(stem)
        if row is None:
            return None
        seen = "never looked at" if row.observed_at is None else f"seen {instant_text(row.observed_at)}"
        return _badges(stem, self.names.row(row.check), row.status, seen, self.names, self.max_age_s).get(path)


def make_feed_files(
    names: Names, live: bytes | None, history: bytes | None, now: int, received_ago_ms: int
) -> FeedFiles:
    """All there is at ``now``; the report arrived so long ago."""
    picture = None if live is None else take_picture(names.about, live, history, now, received_ago_ms)
    # Without a report, one may come at any moment: nothing is to be kept.
    max_age_s, holds_ms = (
        (0, min(note_edges(names.about, now), default=None)) if picture is None else compute_max_age(picture.holds_ms)
    )
    files: dict[str, File | None] = dict.fromkeys((FEED, SUMMARY, STATUS))
    if picture is not None:
        summary, report = encode_summaries(picture, names)
        feed = File(atom.MEDIA_TYPE, atom.encode_feed(picture, names))
        files = {FEED: feed, SUMMARY: File(JSON, summary), STATUS: File(JSON, report)}
    seen = "there is no report" if picture is None else f"as of {instant_text(picture.generated_at)}"
    state: EffectiveStatus = "unknown" if picture is None else picture.overview.status
    said = "" if picture is None else f"{picture.headline.line}, {seen}."
    files |= _badges(BADGE, "services", state, seen, names, max_age_s, said)
    for service in (service.name for service in names.about.services):
        status = "unknown" if picture is None else _status_of(service, picture)
        files |= _badges(f"{BADGE}/{service}", service, status, seen, names, max_age_s)
    rows = {} if picture is None else {_stem(row.check): row for row in picture.rows}
    chains = {atom.feed_path(chain_id): chain_id for chain_id in names.about.chains}
    return FeedFiles(files, rows, chains, picture, names, max_age_s, holds_ms)


def compute_max_age(holds_ms: int | None) -> tuple[int, int | None]:
    """For how many seconds a copy may be kept of what stays true for so long, and for how long that can be said."""
    if holds_ms is None:
        return MAX_AGES_S[0], None
    for max_age_s in MAX_AGES_S:
        left_ms = holds_ms - (max_age_s + 1) * 1000
        if left_ms > 0:
            return max_age_s, left_ms
    return 0, holds_ms


def _status_of(service: str, picture: Picture) -> EffectiveStatus:
    """The worst of what counts of a service; of one that is on test networks alone, the worst of that."""
    counted = picture.overview.services.get(service)
    return counted or worst_of(row.status for row in picture.rows if row.check[0] == service)


def _stem(check: Check) -> str:
    service, chain_id = check
    return f"{BADGE}/{service}" if chain_id is None else f"{BADGE}/{service}/{chain_id}"


def _badges(
    stem: str, label: str, status: EffectiveStatus, seen: str, names: Names, max_age_s: int, said: str = ""
) -> dict[str, File]:
    """``said`` is the headline of a badge for everything."""
    words = said or f"{BY_WORD[status].name}, {seen}. {status_text(status)}"
    title = f"{label}: {words} {names.not_official}"
    return {
        f"{stem}.svg": File(SVG, draw_badge(label, status, title)),
        f"{stem}.json": File(JSON, encode_shield(label, status, max_age_s)),
    }
