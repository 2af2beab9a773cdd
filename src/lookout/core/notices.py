"""Notes and silences: the operator declares them about some rows for some time. Neither changes a measurement."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from lookout.base.instants import Instant, Lasted, parse_duration, parse_second
from lookout.base.problem import Problem
from lookout.base.text import can_be_shown, shorten
from lookout.core.history import DAY_MS
from lookout.core.model import Check

MOST: Final = 50  # of each kind, and of past notes
PAST_DAYS: Final = 14  # as long as the history, beside which past notes are shown
TAKEN_BACK_MS: Final = 10 * 60_000
LONGEST_NOTE: Final = 500
LONGEST_WHY: Final = 200
_LONGEST_SILENCE_DAYS: Final = 30
_FARTHEST_DAYS: Final = 366
_MINUTE_LENGTH: Final = len("2026-11-17T14:00Z")

NoticeKind = Literal["note", "silence"]


class Notice(Struct, frozen=True):
    """A note or a silence. ``text`` is a note's public text, or a silence's reason. While a notice that ``silences`` is
    valid, alerts of its rows are held back."""

    id: str
    kind: NoticeKind
    text: str
    added_at: Instant
    from_at: Instant
    until_at: Instant | None  # None: until it is ended
    services: tuple[str, ...] = ()  # none: all of them
    chains: tuple[int, ...] = ()  # none: all, and the rows of no chain
    silences: bool = False

    def covers(self, check: Check) -> bool:
        return check.is_among(self.services, self.chains)

    def is_over(self, at: int) -> bool:
        return self.until_at is not None and self.until_at <= at

    def is_silent(self, at: int) -> bool:
        return self.silences and self.has_begun(at) and not self.is_over(at)

    def has_begun(self, at: int) -> bool:
        """A notice that began at once continues if the clock is set back."""
        return self.from_at <= max(at, self.added_at)


class Notices(Struct, frozen=True):
    """All notices, the oldest first. Expired silences stay until another notice is declared: a clock that is days ahead
    for a moment ends nothing. Expired notes stay for ``PAST_DAYS``."""

    next_number: Lasted = 1
    declared: tuple[Notice, ...] = ()

    def list_valid(self, at: int, kind: NoticeKind | None = None) -> tuple[Notice, ...]:
        """Current and future notices, the newest first."""
        valid = (notice for notice in reversed(self.declared) if not notice.is_over(at))
        return tuple(notice for notice in valid if kind in (None, notice.kind))

    def list_past_notes(self, at: int) -> tuple[Notice, ...]:
        """Notes that ended in the last days, the newest first."""
        since_at = at - PAST_DAYS * DAY_MS
        over = [notice for notice in reversed(self.declared) if notice.kind == "note" and notice.is_over(at)]
        return tuple(note for note in over if not note.is_over(since_at))[:MOST]

    def find_silenced(self, at: int, checks: Iterable[Check]) -> frozenset[Check]:
        silent = [notice for notice in self.declared if notice.is_silent(at)]
        return frozenset(check for check in checks if any(notice.covers(check) for notice in silent))


class NoticeDraft(Struct, frozen=True, forbid_unknown_fields=True):
    """A notice as the operator writes it: chains by their ids or names, instants and a duration as text."""

    kind: NoticeKind
    text: str = ""
    services: tuple[str, ...] = ()
    chains: tuple[str | int, ...] = ()
    from_: str | None = field(default=None, name="from")
    until: str | None = None
    for_: str | None = field(default=None, name="for")
    silences: bool = False

    @property
    def is_silent(self) -> bool:
        return self.silences or self.kind == "silence"


class Watched(Struct, frozen=True):
    services: tuple[str, ...]
    chains: Mapping[int, str]
    checks: frozenset[Check]


class NoticeError(Exception):
    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def add_notice(notices: Notices, draft: NoticeDraft, at: int, watched: Watched) -> tuple[Notices, Notice]:
    """All notices with the new one, and the new one. NoticeError names every problem of the draft."""
    problems: list[Problem] = []
    from_at, until_at = _read_times(draft, at, problems)
    services, chains = find_scope(draft.services, draft.chains, watched, problems)
    problems += _check_text(draft)
    valid = notices.list_valid(at, draft.kind)
    if len(valid) >= MOST:
        problems.append(Problem(draft.kind, f"there are {MOST} already; end one first"))
    added = Notice(
        str(notices.next_number),
        draft.kind,
        draft.text.strip(),
        at,
        from_at,
        until_at,
        services,
        chains,
        draft.is_silent,
    )
    problems += () if problems else _check_rows(added, watched.checks)
    if problems:
        raise NoticeError(*problems)
    past = notices.list_past_notes(at)
    kept = tuple(notice for notice in notices.declared if notice in past or not notice.is_over(at))
    return Notices(notices.next_number + 1, (*kept, added)), added


def find_scope(
    services: Sequence[str], chains: Sequence[str | int], watched: Watched, problems: list[Problem]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The named services, and the ids of the named chains; names that do not exist are problems."""
    chain_ids = tuple(dict.fromkeys(_find_chains(chains, watched.chains, problems)))
    problems += _check_services(services, watched.services)
    return tuple(dict.fromkeys(services)), chain_ids


def end_notice(notices: Notices, kind: NoticeKind, notice_id: str, at: int) -> tuple[Notices, Notice]:
    """All notices, and the ended one. A note that had been there for ten minutes stays, as a past one; a note that is
    ended sooner, or before it began, was a mistake. NoticeError if there is no such notice of this kind."""
    found = next((notice for notice in notices.list_valid(at) if notice.id == notice_id), None)
    if found is None or found.kind != kind:
        ids = [notice.id for notice in notices.list_valid(at, kind)]
        hint = f"the ids are {', '.join(ids)}" if ids else "there is none at all"
        if found is not None:
            hint = f"it is a {found.kind}: lookout {found.kind} end {found.id}"
        raise NoticeError(Problem("id", f"there is no {kind} {shorten(notice_id, 20)!r}; {hint}"))
    ended = replace(found, until_at=at // 1000 * 1000)
    stays = kind == "note" and at - max(found.from_at, found.added_at) >= TAKEN_BACK_MS
    others = tuple(notice for notice in notices.declared if notice is not found)
    past = (replace(ended, silences=False),) if stays else ()  # so that a clock that is set back silences nothing
    return replace(notices, declared=(*others, *past)), ended


def _read_times(draft: NoticeDraft, at: int, problems: list[Problem]) -> tuple[int, int | None]:
    """When the notice begins and ends, as far as the draft can be read."""
    now_at = at // 1000 * 1000  # stored to the second, as shown
    from_at = _read_instant("from", draft.from_, problems)
    until_at = _read_instant("until", draft.until, problems)
    begin_at = now_at if from_at is None else from_at
    if draft.for_ is not None:
        if draft.until is not None:
            problems.append(Problem("for", "there is until as well; give one of the two"))
        try:
            until_at = begin_at + parse_duration(draft.for_)
        except ValueError as error:
            problems.append(Problem("for", str(error)))
    if not problems:
        problems += _check_times(draft, at, begin_at, until_at)
    return begin_at, until_at


def _read_instant(key: str, text: str | None, problems: list[Problem]) -> int | None:
    if text is None:
        return None
    try:
        return parse_second(f"{text[:-1]}:00{text[-1:]}" if len(text) == _MINUTE_LENGTH else text)
    except ValueError:
        shown = repr(shorten(text, 40))
        problems.append(
            Problem(key, f"{shown} is not an instant in UTC like 2026-11-17T14:00Z or 2026-11-17T14:00:00Z")
        )
        return None


def _check_times(draft: NoticeDraft, at: int, from_at: int, until_at: int | None) -> Iterator[Problem]:
    key = "until" if draft.for_ is None else "for"
    if until_at is None:
        if draft.is_silent:
            yield Problem("until", "missing; alerts are never silenced without an end: give until or for")
    elif until_at <= from_at:
        yield Problem(key, "the end has to be later than the beginning")
    elif until_at <= at:
        yield Problem(key, "the end has passed already")
    elif until_at - at > _FARTHEST_DAYS * DAY_MS:
        yield Problem(key, f"the end is more than {_FARTHEST_DAYS} days away")
    elif draft.is_silent and until_at - from_at > _LONGEST_SILENCE_DAYS * DAY_MS:
        yield Problem(key, f"alerts are silenced for {_LONGEST_SILENCE_DAYS} days at most")


def _check_text(draft: NoticeDraft) -> Iterator[Problem]:
    is_note, text = draft.kind == "note", draft.text.strip()
    key, longest = ("text", LONGEST_NOTE) if is_note else ("why", LONGEST_WHY)
    if is_note and not any(map(str.isprintable, text)):
        yield Problem(key, "missing; a note says something")
    if len(text) > longest:
        yield Problem(key, f"has {len(text):,} characters, and may have {longest}")
    if not all(map(can_be_shown, text)):
        yield Problem(key, "has to be one line that can be printed, without control characters")


def _check_services(named: Sequence[str], known: Collection[str]) -> Iterator[Problem]:
    for name in dict.fromkeys(named):
        if name not in known:
            yield Problem("service", f"there is no service {shorten(name, 60)!r}; there are {', '.join(known)}")


def _find_chains(named: Sequence[str | int], known: Mapping[int, str], problems: list[Problem]) -> Iterator[int]:
    for wanted in dict.fromkeys(map(str, named)):
        found = [chain_id for chain_id, name in known.items() if wanted in (str(chain_id), name)]
        found = found or [chain_id for chain_id, name in known.items() if wanted.casefold() == name.casefold()]
        if len(found) == 1:
            yield found[0]
        elif found:
            problems.append(Problem("chain", f"several are named {wanted}; give the id: {', '.join(map(str, found))}"))
        else:
            there = ", ".join(f"{name} ({chain_id})" for chain_id, name in known.items()) or "none"
            problems.append(Problem("chain", f"there is no chain {shorten(wanted, 60)!r}; there are {there}"))


def _check_rows(notice: Notice, checks: Iterable[Check]) -> Iterator[Problem]:
    """A named service without a row on the named chains is a mistake."""
    covered = {check.service for check in checks if notice.covers(check)}
    for service in notice.services:
        if service not in covered:
            yield Problem("service", f"{service} has no row on these chains; leave it out, or leave out the chains")
