"""Writes alert messages as text, and as data for webhooks.

docs/operations.md documents the data; keys may only be added.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from shlex import quote
from typing import Final, NamedTuple

from msgspec import Struct, to_builtins

from lookout.base.instants import format_duration, format_instant, format_second
from lookout.core.causes import choose_next_step, code_of, describe_cause, split_cause
from lookout.core.model import NO_METRICS, Check, Metrics, Reason, Status
from lookout.core.own_clock import describe_clock_error
from lookout.features.alerts.rules import STORE, News
from lookout.features.outcome import kind_of
from lookout_reader.headline import row_effects
from lookout_reader.statuses import BY_WORD, TROUBLE_STATUSES
from lookout_reader.words import REASON_TEXTS, notes_for

_VERSION: Final = 1  # of the data
MOST_LISTED: Final = 20
_MOST_NAMED: Final = 3  # beside a next step
_PLURALS: Final = {"witness": "witnesses"}
_LONGEST_BODY: Final = 4096  # in bytes: many services take no more
_CUT: Final = "The rest is left out, since this message would be longer than 4 KB."
OVER: Final = ("ended", "left")

_SAMPLE: Final = "This is a test of Lookout's alerts. Nothing is wrong, and you need to do nothing."
_CLOCK_IS_WRONG: Final = """\
The answers of most upstreams say that {error}. Its time is {at}.
Until it is right, broadcasters are not judged, and readers may take every row for old or unknown.
Next: set the clock of the monitor's machine, and look at what should keep it right (NTP)."""
_CLOCK_IS_RIGHT: Final = "The answers of most upstreams agree with it again. Its time is {at}."

_CHECK_NETWORK: Final = "first look at this machine's own network: nothing that is watched answers usefully"
# Next steps without a known cause.
_LOOK_AT_MONITOR: Final = (
    "run `lookout probe`; if that works, look at the monitor's log: it lacks a resource (docs/operations.md), or hangs"
)
_PROBE_NOW: Final = "run `lookout probe`: it says why"
_NOT_OBSERVED: Final = "nothing was observed lately, or it holds nothing for this chain"


class Deployment(Struct, frozen=True):
    """The deployment as messages describe it: chain names by id, service names in the report's order, the operator, the
    page, the admin port, the configuration file, what users notice if an own service fails, and the number of places
    that watch. An empty text is absent."""

    chains: dict[int, str]
    services: tuple[str, ...]
    name: str = ""
    operator: str = ""
    link: str = ""
    has_admin_port: bool = True
    config: str = ""
    effects: dict[str, str] = {}
    places: int = 1


class AlertFacts(Struct, frozen=True):
    """Facts about a check for a message: why it is not current, its last comparison with instant and numbers, and
    without a head, its chain's RPC endpoints and their states, in words."""

    cause: str | None = None
    last_success_at: int | None = None
    last_metrics: Metrics = NO_METRICS
    endpoints: tuple[tuple[str, str], ...] = ()


Facts = Mapping[News, AlertFacts]
_NOTHING_KNOWN: Final = AlertFacts()


class Cause(Struct, frozen=True):
    code: str
    detail: str | None


class Item(Struct, frozen=True, rename="camel"):
    """One check of a message."""

    kind: str
    service: str
    chain_id: int | None
    chain: str | None
    status: str
    reason: str
    was: str
    since: str
    at: str
    watched_seconds: int
    cause: Cause | None
    last_success_at: str | None
    last_metrics: Metrics


class AlertEvent(Struct, frozen=True, rename="camel"):
    """A whole message. It is stored with the message, so stored data may be of another version."""

    version: int
    kind: str
    is_over: bool
    deployment: str
    operator: str
    link: str | None
    items: tuple[Item, ...] = ()


class Message(NamedTuple):
    """A message as plain text and as data. It is over if all its episodes are."""

    title: str
    body: str
    is_over: bool = False
    event: AlertEvent | None = None


def write_sample(deployment: Deployment) -> Message:
    """A test message, with the type of a bad one, so that pagers ring."""
    return _write("sample", "a test", _SAMPLE, deployment)


def write_clock(at: int, error_ms: int, deployment: Deployment) -> Message:
    """This machine's clock is wrong by ``error_ms``, or right again if 0 (M17)."""
    error = describe_clock_error(error_ms) if error_ms else "this machine's clock is right again"
    body = (_CLOCK_IS_WRONG if error_ms else _CLOCK_IS_RIGHT).format(error=error, at=format_second(at))
    return _write("clock", error, body, deployment, is_over=not error_ms)


def write_message(
    news: Iterable[News],
    deployment: Deployment,
    facts: Mapping[News, AlertFacts] = {},
    *,
    nothing_answers: bool = False,
) -> Message:
    """One message with all news for one target. ``nothing_answers``: no upstream does."""
    ordered = sorted(_without_repeats(news), key=lambda item: (*_place(item.check, deployment.services), item.since_at))
    sections: dict[str, list[News]] = {}
    for item in sorted(ordered, key=_rank):
        sections.setdefault(_choose_heading(item, facts.get(item, _NOTHING_KNOWN)), []).append(item)
    trouble = [item for section in sections.values() for item in section if _needs_action(item)]
    lines = [f"Next: {_CHECK_NETWORK}.", ""] if nothing_answers and trouble else []
    room = MOST_LISTED
    for heading, section in sections.items():
        lines += [*_write_section(heading, section, max(0, room), deployment, facts), ""]
        room -= len(section)
    lines += _write_help(trouble, deployment)
    is_over = all(item.kind in OVER for item in ordered)
    items = [make_item(item, facts.get(item, _NOTHING_KNOWN), deployment) for item in ordered]
    title, body = _sum_up(sections, deployment), "\n".join(lines).rstrip()
    return _write("checks", title, body, deployment, items, is_over=is_over)


def _write(
    kind: str, title: str, body: str, deployment: Deployment, items: Iterable[Item] = (), *, is_over: bool = False
) -> Message:
    """Add the sender, the links and the disclaimer (C12)."""
    whose = f"Lookout ({deployment.name})" if deployment.name else "Lookout"
    signature = (
        *((f"The status page: {deployment.link}",) if deployment.link else ()),
        *((f"The monitor is run by {deployment.operator}.",) if deployment.operator else ()),
        notes_for("", places=deployment.places)[0].text,
    )
    event = make_event(kind, deployment, items, is_over=is_over)
    room = _LONGEST_BODY - len("\n".join(("", "", *signature)).encode())
    return Message(f"{whose}: {title}", "\n".join((_shorten_body(body, room), "", *signature)), is_over, event)


def make_event(kind: str, deployment: Deployment, items: Iterable[Item] = (), *, is_over: bool = False) -> AlertEvent:
    link = deployment.link or None
    return AlertEvent(_VERSION, kind, is_over, deployment.name, deployment.operator, link, tuple(items))


def name_service(check: Check) -> str:
    """Its service, or the name of a stand-in: of a view without its kind, since the place is in it."""
    return check.service.removeprefix("view ")


def make_item(news: News, facts: AlertFacts, deployment: Deployment) -> Item:
    check = news.check
    last_at = facts.last_success_at
    return Item(
        news.kind,
        name_service(check),
        check.chain_id,
        None if check.chain_id is None else deployment.chains.get(check.chain_id),
        news.status,
        news.reason,
        news.was,
        format_instant(news.since_at),
        format_instant(news.at),
        news.seen_ms // 1000,
        None if facts.cause is None else Cause(*split_cause(facts.cause)),
        None if last_at is None else format_instant(last_at),
        facts.last_metrics,
    )


def _shorten_body(body: str, room: int) -> str:
    """What fits into so many bytes, cut at a line's end."""
    if len(body.encode()) <= room:
        return body
    fitting, _, _ = body.encode()[: max(0, room - len(_CUT))].rpartition(b"\n")
    return f"{fitting.decode()}\n{_CUT}"


def _without_repeats(news: Iterable[News]) -> Iterator[News]:
    """Keep only the end of what began and ended within one message. Two rules may report the same about a check."""
    everything = tuple(news)
    over = {_episode(item) for item in everything if item.kind in OVER}
    degraded = {item.check for item in everything if item.kind in OVER and item.was == "degraded"}

    def is_repeated(item: News) -> bool:
        if item.kind not in OVER:
            return _episode(item) in over
        return (
            item.was == "catching-up" and item.check in degraded
        )  # it did not move, became degraded, and recovers once

    left = (item for item in everything if not is_repeated(item))
    yield from {(item.kind, item.check, item.since_at): item for item in left}.values()


def _episode(news: News) -> tuple[str, Check, int]:
    return news.rule, news.check, news.since_at


def _place(check: Check, service_names: Sequence[str]) -> tuple[int, int]:
    """The sort key of checks (R12); checks of removed services come last."""
    known = check.service in service_names
    return service_names.index(check.service) if known else len(service_names), check.chain_id or 0


def _needs_action(news: News) -> bool:
    return news.kind not in OVER or (news.kind == "ended" and news.status in TROUBLE_STATUSES)


def _rank(news: News) -> tuple[int, int]:
    """The sort key of a message's sections: the worst first."""
    kinds = ("began", "goes-on", "ended", "left")
    severity = 0 if news.status == "unknown" else BY_WORD[news.status].severity
    return kinds.index(news.kind), -severity


def _does_not_move(news: News, known: AlertFacts) -> bool:
    """Whether the news is of a position or a chain that does not move, and not of a degraded row."""
    code = code_of(known.cause or "")
    return code == "no_new_block" or (code == "not_moving" and news.status == "catching-up")


def _choose_heading(news: News, known: AlertFacts) -> str:
    """A section's heading; ``{be}`` becomes is or are."""
    if kind_of(news.check) == "view" and news.kind != "left":
        return "{be} as published again" if news.kind == "ended" else "{be} not as published"
    if news.kind == "began" and _does_not_move(news, known):
        return "{be} not moving"
    bad = "cannot be judged" if news.status == "unknown" else f"{{be}} {news.status}"
    match news.kind:
        case "began":
            return bad
        case "goes-on":
            return "still cannot be judged" if news.status == "unknown" else f"{{be}} still {news.status}"
        case "ended":
            return "recovered" if news.status == "current" else f"{{be}} {news.status} now"
        case "left":
            return "{be} no longer watched"


def _sum_up(sections: dict[str, list[News]], deployment: Deployment) -> str:
    checks = {heading: list(dict.fromkeys(item.check for item in section)) for heading, section in sections.items()}
    (heading, first), *others = checks.items()
    if not others and len(first) == 1:
        return f"{_name(first[0], deployment)} {heading.format(be='is')}"
    noun, *more_nouns = {kind_of(check) or "check" for check in first}
    noun = "check" if more_nouns else noun
    if len(first) > 1:
        noun = f"{_PLURALS.get(noun, f'{noun}s')}{_share_chain(first, deployment)}"
    counted = [f"{'the store' if first == [STORE] else f'{len(first)} {noun}'} {_be(heading, first)}"]
    return ", ".join((*counted, *(f"{len(some)} {_be(heading, some)}" for heading, some in others)))


def _share_chain(checks: Sequence[Check], deployment: Deployment) -> str:
    """The one chain of all checks, if so: it may be the cause."""
    chain_id, *others = {check.chain_id for check in checks}
    return "" if others or chain_id is None else f" on {_name_chain(chain_id, deployment)}"


def _be(heading: str, checks: Sequence[Check]) -> str:
    return heading.format(be="is" if len(checks) == 1 else "are")


def _name(check: Check, deployment: Deployment) -> str:
    if check.chain_id is None or kind_of(check) is not None:  # these names include the chain or its id
        return name_service(check)
    return f"{check.service} on {_name_chain(check.chain_id, deployment)}"


def _name_chain(chain_id: int, deployment: Deployment) -> str:
    return deployment.chains.get(chain_id, f"chain {chain_id}")  # a removed chain has no name


def _write_section(
    heading: str, section: Sequence[News], room: int, deployment: Deployment, facts: Facts
) -> Iterator[str]:
    """The checks of one section, as many as fit, and their common next step."""
    title = heading.removeprefix("{be} ")
    yield f"{title[0].upper()}{title[1:]}:"
    endpoints: dict[tuple[int | None, str], str] = {}  # with the chain id, since two chains may have one name
    for news in section[:room]:
        known = facts.get(news, _NOTHING_KNOWN)
        name = _name(news.check, deployment)
        if news.kind in OVER:
            yield f"- {name}: {_write_course(news, known)}"
        else:
            # Since when something has not moved is in the cause; the episode is shorter.
            lasted = f", for {_write_time(news)}, since {format_second(news.since_at)}"
            yield f"- {name}: {_describe_why(news, known)}{'' if _does_not_move(news, known) else lasted}"
            if news.status in ("unavailable", "unknown") and news in facts and kind_of(news.check) is None:
                yield f"  {_write_last_answer(known)}"
            endpoints |= {(news.check.chain_id, endpoint): state for endpoint, state in known.endpoints}
    if others := len(section[room:]):
        yield f"- and {others} more"
    if endpoints:
        yield from ("RPC endpoints:", *(f"  {name}: {state}" for (_, name), state in endpoints.items()))
    steps: dict[str, dict[str, None]] = {}
    for news in section:
        if _needs_action(news):
            step = _choose_next_step(news, facts.get(news, _NOTHING_KNOWN))
            steps.setdefault(step, {})[_name(news.check, deployment)] = None
    for step, names in steps.items():
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        whose = f", {', '.join([*names][:_MOST_NAMED])}{more}" if len(steps) > 1 else ""
        yield f"Next{whose}: {step}."


def _write_time(news: News) -> str:
    return format_duration(max(news.at - news.since_at, news.seen_ms))


def _write_course(news: News, known: AlertFacts) -> str:
    """The status until the episode's end, and why it is not current now."""
    if news.kind == "ended" and kind_of(news.check) == "chain":
        return f"new blocks since {format_second(news.at)}"
    bad = "not as published" if kind_of(news.check) == "view" else news.was
    was = "could not be judged" if news.was == "unknown" else f"was {bad}"
    lasted = f"{was} for {_write_time(news)}, from {format_second(news.since_at)} to {format_second(news.at)}"
    if news.kind == "left":
        return f"{lasted}; whether it recovered is not known"
    return lasted if news.status == "current" else f"{lasted}; now: {_describe_why(news, known)}"


def _write_last_answer(known: AlertFacts) -> str:
    """When a check that does not answer or is unknown was judged last."""
    if known.last_success_at is None:
        return "last good answer: never"
    numbers = ", ".join(f"{name} {number}" for name, number in to_builtins(known.last_metrics).items())
    return f"last good answer: {format_second(known.last_success_at)}{f' ({numbers})' if numbers else ''}"


def _describe_why(news: News, known: AlertFacts) -> str:
    if known.cause is not None:
        return describe_cause(known.cause)
    if news.reason == "no-observation":
        return _NOT_OBSERVED
    text = REASON_TEXTS.get(news.reason, news.reason)  # the public sentence, as a clause
    return f"{text[0].lower()}{text[1:].removesuffix('.')}"


def _choose_next_step(news: News, known: AlertFacts) -> str:
    step = None if known.cause is None else choose_next_step(known.cause)
    return step or (_LOOK_AT_MONITOR if news.reason == "no-observation" else _PROBE_NOW)


def _write_help(bad: Sequence[News], deployment: Deployment) -> Iterator[str]:
    """The effect on users, and the operator's commands."""
    if not bad:
        return
    effects: dict[str, list[str]] = {}
    for news in bad:
        if effect := describe_effect(news.check.service, news.status, news.reason, deployment.effects):
            effects.setdefault(effect, []).append(news.check.service)
    if effects:
        noticed = (f"{effect} ({', '.join(dict.fromkeys(of))})" for effect, of in effects.items())
        yield f"What users may notice: {'; '.join(noticed)}."
    probe = "To see more: `lookout probe` asks everything now"
    if not deployment.has_admin_port:
        yield f"{probe}."
        return
    yield from (f"To silence this: {command}" for command in _write_silences(bad, deployment.config))
    yield f"{probe}; /sources on the monitor's admin port has the last answers."


def _write_silences(bad: Iterable[News], config: str) -> Iterator[str]:
    """A command for each service that silences these checks and no others. Chains are given by id, which is never
    ambiguous."""
    which = f"-c {quote(config)} " if config else ""
    chains: dict[str, dict[int | None, None]] = {}
    for news in bad:
        if kind_of(news.check) is None:
            chains.setdefault(news.check.service, {})[news.check.chain_id] = None
    for service, chain_ids in chains.items():
        on = "".join(f" --chain {chain_id}" for chain_id in chain_ids if chain_id is not None)
        yield f"lookout silence add {which}--service {service}{on} --for 2h"


def describe_effect(service: str, status: Status, reason: Reason, own: Mapping[str, str] = {}) -> str | None:
    """What users may notice, in the words of every face; None for unknown rows and services that ``own`` lacks."""
    if service in own:
        return own[service].rstrip(".") if status in TROUBLE_STATUSES else None
    return ", and ".join(row_effects(service, status, reason)) or None
