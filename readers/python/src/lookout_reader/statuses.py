"""Every status, declared once, in a row of this table.

The JavaScript reader has what it needs of it between two marks, written by ``make schemas``.
"""

from dataclasses import dataclass
from typing import Final, Literal

TroubleStatus = Literal["catching-up", "degraded", "unavailable"]
#: The statuses in a report.
PublishedStatus = Literal["current", TroubleStatus, "unknown", "unmonitored"]
#: Effective statuses: a row without a recent reading is stale, which no report says.
EffectiveStatus = Literal[PublishedStatus, "stale"]

Kind = Literal["well", "trouble", "unknown", "unwatched"]
ComponentStatus = Literal["operational", "degraded_performance", "partial_outage", "major_outage"]
Indicator = Literal["none", "minor", "major", "critical"]


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours on a light or a dark page: of text and shapes, of bars if different, of cards if they have one."""

    text: str
    bar: str | None
    tint: str | None


@dataclass(frozen=True, slots=True)
class Appearance:
    """Shape and colour: no status is known by its colour alone. A badge has the colour of a light page.

    ``svg`` is drawn into a square of 16 by 16; ``shape`` is a terminal's.
    """

    light: Palette
    dark: Palette
    svg: str
    shape: str
    terminal_colour: str


@dataclass(frozen=True, slots=True)
class Statuspage:
    """In the words of Atlassian Statuspage. An unmonitored check is no component."""

    component: ComponentStatus | None
    indicator: Indicator


@dataclass(frozen=True, slots=True)
class StatusEntry:
    """One status. ``name`` is what people read everywhere, ``character`` a bucket's; the worst of several statuses is
    the one of the highest ``severity``."""

    word: EffectiveStatus
    name: str
    character: str | None
    severity: int
    kind: Kind
    sentence: str
    look: Appearance
    statuspage: Statuspage


GREY: Final = (Palette("6d737c", None, "f1f1ef"), Palette("959ca6", None, "1e2126"))

# In the order of the documentation: the readings from best to worst, then what is none. Severities leave room for more.
# All colours are chosen together: for contrast (WCAG AA), white on them included, and to stay apart for colour-blind
# eyes.
STATUSES: Final = (
    StatusEntry(
        "current",
        "no problem seen",
        "c",
        10,
        "well",
        "It answers, and what was checked is as it should be.",
        Appearance(
            Palette("0b7a5e", "3d9c7f", None),
            Palette("3cc79b", "2d8a6d", None),
            '<circle cx="8" cy="8" r="6.5"/>',
            "●",
            "green",
        ),
        Statuspage("operational", "none"),
    ),
    StatusEntry(
        "catching-up",
        "behind",
        "k",
        40,
        "trouble",
        "It answers, but is behind. Expect old data; this is not an outage.",
        Appearance(
            Palette("0b68a8", None, "edf5fb"),
            Palette("63b6f5", None, "15232f"),
            '<path d="M8 .8 15.2 8 8 15.2.8 8z"/>',
            "◆",
            "yellow",
        ),
        Statuspage("degraded_performance", "minor"),
    ),
    StatusEntry(
        "degraded",
        "limited",
        "d",
        50,
        "trouble",
        "It answers, but with serious trouble. Do not rely on it where time matters.",
        Appearance(
            Palette("a35b00", "cc7d00", "fdf4e3"),
            Palette("eeae3f", "e0a030", "2a2214"),
            '<path d="M8 1.2 15.6 14.4H.4z"/>',
            "▲",
            "dark_orange",
        ),
        Statuspage("partial_outage", "major"),
    ),
    StatusEntry(
        "unavailable",
        "not answering",
        "u",
        60,
        "trouble",
        "It did not answer usefully several times in a row.",
        Appearance(
            Palette("b9310a", None, "fdeee9"),
            Palette("ff8a66", None, "301b15"),
            '<path d="M3.8 1.2 8 5.4l4.2-4.2 2.6 2.6L10.6 8l4.2 4.2-2.6 2.6L8 10.6l-4.2 4.2-2.6-2.6L5.4 8 1.2 3.8z"/>',
            "✖",
            "red",
        ),
        Statuspage("major_outage", "critical"),
    ),
    # Statuspage has no word for unknown. Its mildest word except "operational" is degraded_performance; the component's
    # description explains it.
    StatusEntry(
        "unknown",
        "unknown",
        "?",
        20,
        "unknown",
        "There is too little to judge by: it may or may not work.",
        Appearance(*GREY, '<circle class="line" cx="8" cy="8" r="5.6"/>', "?", "bright_black"),
        Statuspage("degraded_performance", "minor"),
    ),
    StatusEntry(
        "unmonitored",
        "not watched",
        ".",
        0,
        "unwatched",
        "It is not watched here. That is not a failure.",
        Appearance(*GREY, '<path d="M2.5 6.9h11v2.2h-11z"/>', "·", "bright_black"),
        Statuspage(None, "minor"),
    ),
    StatusEntry(
        "stale",
        "too old to say",
        None,
        30,
        "unknown",
        "There is no recent reading: the last one is too old to judge by.",
        Appearance(
            *GREY,
            '<circle class="line" cx="8" cy="8" r="6.2"/><path class="line" d="M8 4.4V8l2.6 2"/>',
            "◌",
            "bright_black",
        ),
        Statuspage("degraded_performance", "minor"),
    ),
)

BY_WORD: Final[dict[EffectiveStatus, StatusEntry]] = {status.word: status for status in STATUSES}
_WORST_FIRST: Final = sorted(STATUSES, key=lambda status: status.severity, reverse=True)

#: From worst to best; unmonitored is neither (see roll_up).
EFFECTIVE_STATUSES: Final[tuple[EffectiveStatus, ...]] = tuple(status.word for status in _WORST_FIRST)
#: Those that are a reading of the service, from worst to best: what uptime counts.
KNOWN_STATUSES: Final[tuple[PublishedStatus, ...]] = tuple(
    status.word for status in _WORST_FIRST if status.kind in ("well", "trouble") and status.word != "stale"
)
TROUBLE_STATUSES: Final[tuple[PublishedStatus, ...]] = tuple(
    word for word in KNOWN_STATUSES if BY_WORD[word].kind == "trouble"
)

#: A bucket's, by status.
CHARACTERS: Final[dict[PublishedStatus, str]] = {
    status.word: status.character for status in STATUSES if status.word != "stale" and status.character is not None
}
KNOWN_CHARACTERS: Final = "".join(map(CHARACTERS.__getitem__, KNOWN_STATUSES))
TROUBLE_CHARACTERS: Final = "".join(map(CHARACTERS.__getitem__, TROUBLE_STATUSES))
NO_DATA: Final = "-"
