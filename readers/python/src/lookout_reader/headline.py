"""An overview in words: what every face says first (C16)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from lookout_reader.overview import (
    ACTIVITIES,
    NO_REPORT,
    STOPPED_MS,
    ActivityState,
    Doubt,
    Overview,
    Problem,
    effect_of,
)
from lookout_reader.report import Row
from lookout_reader.statuses import BY_WORD, TROUBLE_STATUSES, EffectiveStatus
from lookout_reader.words import OVERVIEW_TEXTS

_NAMED_MOST: Final = 3  # networks
_ALSO_MOST: Final = 3  # problems
_APART_MS: Final = 600_000
SINCE_MS: Final = 120_000  # then it is said since when there has been no report, not for how long
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Headline:
    """What an overview says, in parts without a full stop at their end; a part is empty if there is nothing to say.

    ``text`` is the headline, ``short`` the same without networks, for a title or a badge. ``cause`` is the doubt that
    is the headline, if it is one, and ``doubts`` are the others, in sentences.
    """

    text: str
    short: str
    since: str = ""
    also: str = ""
    advice: str = ""
    cause: Doubt | None = None
    doubts: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """What is so, since when and what else, in one line."""
        return ". ".join(part for part in (self.text, self.since, self.also) if part)


def headline_of(overview: Overview) -> Headline:
    """The overview in English; instants are in UTC."""
    doubts = tuple(_text(f"trouble.{doubt}") for doubt in overview.doubts if doubt not in NO_REPORT)
    return replace(_say(overview), doubts=doubts)


def _say(overview: Overview) -> Headline:
    trouble = [problem for problem in overview.problems if problem.effect != "unknown"]
    unknown = [problem for problem in overview.problems if problem.effect == "unknown"]
    states = [state for network in overview.networks if network.counted for state in network.activities]
    watched = [state for state in states if state.status != "unmonitored"]
    cause = next((doubt for doubt in overview.doubts if doubt in NO_REPORT), None)
    advice = _advice(trouble, unknown)
    if overview.nothing_reached:
        return Headline(*_twice("band.silent"), advice=advice)
    if trouble:
        # A report that does not come explains what is not known.
        found = _say_problems(overview, trouble, [] if cause else unknown, advice)
        also = ". ".join(part for part in (found.also, cause and _cause_text(overview, cause)) if part)
        return replace(found, also=also)
    if cause is not None:
        return _say_cause(overview, cause, watched)
    if not watched:
        is_any = any(state.status != "unmonitored" for network in overview.networks for state in network.activities)
        return Headline(*_twice("band.none.main" if is_any else "band.none"))
    if all(state.effect == "unknown" for state in watched) and not any(problem.unreached for problem in unknown):
        return Headline(_nothing_text(overview, watched), _text("band.nothing"), advice=_text("advice.nothing"))
    if unknown:
        return _say_problems(overview, [], unknown, advice or _text("advice.nothing"))
    if overview.doubts:
        return Headline(*_twice("band.doubted"))
    return Headline(_text("band.well", what=_well_text(overview)), _capitalize(_text("may.well")))


def _say_problems(overview: Overview, trouble: Sequence[Problem], unknown: Sequence[Problem], advice: str) -> Headline:
    said = [(_effect_text(overview, problem), problem.chain_ids) for problem in trouble] + _join_unknown(
        overview, unknown
    )
    sentences = [_place(overview, effect, chain_ids) for effect, chain_ids in said]
    left = len(sentences) - 1 - _ALSO_MOST
    others = sentences[1 : 1 + _ALSO_MOST] + ([_text("problems.more", count=left)] if left > 0 else [])
    if others:
        also = _text("also", problems=_join("list.long", others))
    else:
        also = "" if overview.doubts else _others_text(overview, set(said[0][1]))
    return Headline(
        text=_capitalize(sentences[0]),
        short=_capitalize(said[0][0]),
        since=_since_text(overview, trouble[0]) if trouble else "",
        also=also,
        advice=advice,
    )


def _say_cause(overview: Overview, cause: Doubt, watched: Iterable[ActivityState]) -> Headline:
    is_seen = any(state.status == "current" for state in watched)
    return Headline(
        text=_cause_text(overview, cause),
        short=_text(f"cause.{cause}.short"),
        also=_text("band.doubted") if is_seen else "",
        advice="" if cause == "asleep" else _text("advice.nothing"),
        cause=cause,
    )


def _cause_text(overview: Overview, cause: Doubt) -> str:
    age_ms = overview.age_ms or 0
    if cause != "stopped":
        return _text(f"cause.{cause}")
    if age_ms < SINCE_MS:
        return _text("cause.stopped", seconds=STOPPED_MS // 1000)
    return _text("cause.stopped.since", since=instant_text(int(overview.now - age_ms), overview.now))


def _join_unknown(overview: Overview, unknown: Iterable[Problem]) -> list[tuple[str, tuple[int | None, ...]]]:
    """Everything about which nothing is known on the same networks as one."""
    names: dict[tuple[int | None, ...], list[str]] = {}
    for problem in unknown:
        names.setdefault(problem.chain_ids, []).append(_activity_text(overview, problem))
    return [(_text("effect.unknown", what=_and(what)), chain_ids) for chain_ids, what in names.items()]


def _effect_text(overview: Overview, problem: Problem) -> str:
    if problem.activity is not None:
        return _text(f"effect.{problem.activity}.{problem.effect}")
    return _text("effect.own", service=_activity_text(overview, problem), effect=effect_word(overview, problem))


def effect_word(overview: Overview, state: ActivityState | Problem) -> str:
    """What may happen to an activity of an overview, without its name: "may be late". Of a service of the operator's
    own it is the operator to say what its failure means; otherwise its status is said."""
    if state.effect != "trouble":
        return _text(f"may.{state.effect}")
    said = next((each.effect for each in overview.about.services if each.name == state.service), "")
    return said.rstrip(".") or BY_WORD[state.status].name


def row_effects(service: str, status: EffectiveStatus, reason: str | None) -> list[str]:
    """What a row in trouble may do, by activity. A gap in an indexer's list leaves proofs pending, too."""
    found = [activity for activity, services in ACTIVITIES.items() if service in services]
    if found == ["balances"] and reason == "incomplete":
        found.append("proofs")
    effects = [(activity, effect_of(activity, status, reason)) for activity in found]
    return [_text(f"effect.{activity}.{effect}") for activity, effect in effects if status in TROUBLE_STATUSES]


def _activity_text(overview: Overview, state: Problem | ActivityState) -> str:
    if state.activity is not None:
        return _text(f"activity.{state.activity}")
    titles = {service.name: service.title for service in overview.about.services}
    return titles.get(state.service, state.service)


def _place(overview: Overview, what: str, chain_ids: Iterable[int | None], *, counts: bool = False) -> str:
    """With the networks: by their names if they are few, or how many of all."""
    on = [chain_id for chain_id in chain_ids if chain_id is not None]
    if not on:
        return what
    every = sum(network.counted and network.chain_id is not None for network in overview.networks)
    if len(on) == every and every > 2:
        return _text("on", what=what, networks=_text("networks.all", count=every))
    if len(on) > (1 if counts else _NAMED_MOST):
        return _text("on", what=what, networks=_text("networks.part", count=len(on), all=every))
    return _text("on", what=what, networks=_and(list(map(overview.about.chain_name, on))))


def _others_text(overview: Overview, bad: set[int | None]) -> str:
    """That there is no problem on the other networks, if all of them are current."""
    others = [each for each in overview.networks if each.counted and each.chain_id not in {None, *bad}]
    is_well = all(state.status in ("current", "unmonitored") for each in others for state in each.activities)
    is_seen = all(each.status == "current" for each in others)
    return _text("band.others", count=len(others)) if others and is_well and is_seen and bad != {None} else ""


def _since_text(overview: Overview, problem: Problem) -> str:
    since, until_at = problem.since, problem.until_at
    parts = []
    if since is not None:
        is_apart = since.last_at - since.at > _APART_MS
        key = "since.first" if is_apart else "since" if since.seen else "since.before"
        parts.append(_text(key, since=instant_text(since.at, overview.now)))
    if until_at is not None:
        parts.append(_text("end.until", until=instant_text(until_at, overview.now)))
    elif since is not None:
        parts.append(_text("end.none"))
    return _capitalize(_join("list", parts))


def _nothing_text(overview: Overview, watched: Iterable[ActivityState]) -> str:
    seen = [
        check.row.observed_at
        for state in watched
        for check in state.bad
        if check.effective == "stale" and isinstance(check.row, Row) and check.row.observed_at is not None
    ]
    return _text("band.stale", since=instant_text(max(seen), overview.now)) if seen else _text("band.nothing")


def _well_text(overview: Overview) -> str:
    """What is current, with the networks where it is."""
    where: dict[str, list[int | None]] = {activity: [] for activity in ACTIVITIES}
    names: dict[str, str] = {}
    for network in overview.networks:
        for state in network.activities:
            if network.counted and state.status == "current":
                names[key := state.activity or state.service] = _activity_text(overview, state)
                where.setdefault(key, []).append(network.chain_id)
    together: dict[tuple[int | None, ...], list[str]] = {}
    for key, chain_ids in where.items():
        if chain_ids and names[key] not in together.setdefault(tuple(chain_ids), []):  # two may have one title
            together[tuple(chain_ids)].append(names[key])
    counts = len(together) > 1  # the names of all networks would be too long
    return _join("list", [_place(overview, _and(whats), on, counts=counts) for on, whats in together.items()])


def _advice(trouble: Iterable[Problem], unknown: Iterable[Problem]) -> str:
    found = {(each.activity, each.effect) for each in (*trouble, *(each for each in unknown if each.unreached))}
    activities = {activity for activity, _ in found}
    is_of_transactions = not activities.isdisjoint(("send", "balances"))
    wanted = [
        ("advice.stop", ("balances", "stop") in found),
        ("advice.transactions", is_of_transactions),
        ("advice.proofs", "proofs" in activities and not is_of_transactions),
    ]
    return " ".join(_text(key) for key, is_wanted in wanted if is_wanted)


# ---- Words


def _twice(key: str) -> tuple[str, str]:
    return _text(key), _text(key)


def _text(key: str, **slots: str | int) -> str:
    found = OVERVIEW_TEXTS[key]
    pattern = found if isinstance(found, str) else found["one" if slots["count"] == 1 else "other"]
    return pattern.format_map(slots)


def _join(key: str, items: Sequence[str]) -> str:
    joined = items[0] if items else ""
    for item in items[1:]:
        joined = _text(key, one=joined, other=item)
    return joined


def _and(items: Sequence[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return _text("list.last", one=_join("list", items[:-1]), other=items[-1])


def _capitalize(words: str) -> str:
    return words[:1].upper() + words[1:]


def instant_text(at: int, now: float) -> str:
    """``14:25 UTC``, with its day if that is not today."""
    date = datetime.fromtimestamp(at / 1000, UTC)
    is_today = now // _DAY_MS == at // _DAY_MS
    return f"{date:%H:%M} UTC" if is_today else f"{date.day} {date:%b %H:%M} UTC"
