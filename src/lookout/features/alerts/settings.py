"""The tables of alerts: targets and rules."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from lookout.base.problem import Problem
from lookout.base.setting_types import (
    SECRET,
    ChainIds,
    Duration,
    DurationOrZero,
    OneOf,
    Table,
    Text,
    UrlOrNone,
    ValueRule,
    in_ms,
)
from lookout.core.model import Check, Reason, Status
from lookout.core.services import Service, find_unknown_services
from lookout.features.alerts import rules as episodes
from lookout.features.alerts.messages import Deployment
from lookout.features.feature import Around
from lookout.features.outcome import STORE_KEY, EntryKey, StandIn
from lookout_reader.statuses import TROUBLE_STATUSES, TroubleStatus

_TARGET_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")
# The reasons of rows that can be bad, with their statuses (R, S).
BAD_REASONS: Final[dict[Reason, tuple[Status, ...]]] = {
    "behind": ("catching-up", "degraded"),
    "partial-coverage": ("degraded",),
    "incomplete": ("degraded",),
    "inconsistent": ("degraded",),
    "unreachable": ("unavailable", "unknown"),
    "no-observation": ("unknown",),
    "incompatible-reference": ("unknown",),
    "not-everywhere": ("catching-up", "degraded", "unknown"),
}
# Without `reasons`, a rule leaves out broadcasters of which some are silent: other people's, and nothing to repair.
_DEFAULT_REASONS: Final = frozenset(BAD_REASONS) - {"partial-coverage"}
# Reasons for which a row stays unknown, however long the monitor waits. `unreachable` is soon `unavailable` (S1, S2).
_UNJUDGED: Final = frozenset[Reason](("no-observation", "incompatible-reference", "not-everywhere"))
# With witnesses it stays `unknown` while no other place confirms it (W4).
_JUDGED_BY_PLACES: Final = frozenset[Reason](("unreachable",))
# After a start, and between two heads, rows are unknown for a moment: no alert for that.
_UNJUDGED_FOR_S: Final = 300
_IF_UNJUDGED: Final[Any] = None  # of ``unknown``, where it is left out


class AlertRule(Table, frozen=True):
    name: str = ""
    """Distinguishes rules of the same scope."""
    services: tuple[Text, ...] = ()
    """The services that it applies to; `[]` means all.
    Allowed: names of services"""
    chains: ChainIds = ()
    """The chains that it applies to; `[]` means all, and the rows without a chain."""
    from_: TroubleStatus = field(default="degraded", name="from")
    """This status or a worse one is bad."""
    unknown: bool = _IF_UNJUDGED
    """`true`: `unknown` is as bad as `from`; `false`: it is not reported. Left out: reported after `for_s`, and 5
    minutes at least, if the check [cannot be judged](operations.md#rules-by-example).
    Example: false"""
    reasons: tuple[Annotated[Reason, OneOf(lambda: BAD_REASONS)], ...] = ()
    """Only rows with one of these reasons are bad; `[]` means all but `"partial-coverage"`."""
    for_s: DurationOrZero = 300
    """How long a check has to be seen bad before the first message."""
    remind_s: DurationOrZero = 3600
    """The first reminder; each further one after twice as long, up to a day; 0 is never."""
    not_moving_s: DurationOrZero = 300
    """A rule from `degraded` also reports a position that is behind and [has not
    moved](operations.md#rules-by-example) for so long, and chains; 0 is never."""
    targets: Annotated[tuple[Text, ...], SECRET] = ()  # a name, or by mistake an address
    """Where its messages go; `[]` means all.
    Allowed: names of `targets` above"""

    def key(self) -> str:
        """Identifies the rule's stored episodes, also after a change: its name, or its conditions."""
        if self.name:
            return self.name
        where = f"{','.join(sorted(self.services))}/{','.join(map(str, sorted(self.chains)))}"
        only = f"/{','.join(sorted(self.reasons))}" if self.reasons else ""
        return f"{where}/{self.from_}/{bool(self.unknown)}{only}"

    def matches(self, check: Check) -> bool:
        return check.is_among(self.services, self.chains)

    def build(
        self, monitored: Iterable[Check], all_targets: Iterable[str], unjudged: frozenset[Reason] = _UNJUDGED
    ) -> Iterator[episodes.EpisodeRule]:
        """Its rules of episodes: unknown rows have episodes of their own, unless the rule counts them with bad rows."""
        for_ms, reasons = in_ms(self.for_s), frozenset(self.reasons) or _DEFAULT_REASONS
        rule = episodes.EpisodeRule(
            self.key(),
            frozenset(check for check in monitored if self.matches(check)),
            frozenset((*self._trouble(), "unknown") if self.unknown else self._trouble()),
            for_ms,
            in_ms(self.remind_s),
            self.targets or tuple(all_targets),
            reasons,
        )
        yield rule
        if self.not_moving_s and self.from_ == "degraded" and "behind" in reasons:
            yield replace(
                rule,
                key=f"{self.key()}\nstill",
                statuses=frozenset(("catching-up",)),
                for_ms=0,
                remind_ms=0,
                still_ms=in_ms(self.not_moving_s),
            )
        if self.unknown is _IF_UNJUDGED:
            yield replace(
                rule,
                key=f"{self.key()}\nunjudged",
                statuses=frozenset(("unknown",)),
                for_ms=max(for_ms, in_ms(_UNJUDGED_FOR_S)),
                reasons=unjudged & reasons,
                alerts_on_no_data="no-observation" in self.reasons,  # for example, a chain that never had a broadcaster
                known_rule=rule,
            )

    def build_without_rows(
        self,
        chains: Collection[StandIn],
        others: Collection[StandIn],
        others_for_ms: int,
        all_targets: Iterable[str],
    ) -> Iterator[episodes.EpisodeRule]:
        """The rules that report once what no row shows: a chain that does not move, a lost or differing RPC endpoint,
        a fault of a source, or what a feature has reported."""
        targets = self.targets or tuple(all_targets)
        for part, checks, for_ms in (
            ("chains", chains if self.not_moving_s else (), 0),
            ("endpoints", others, others_for_ms),
        ):
            matching = frozenset(check for check in checks if self.matches(check))
            bad = frozenset[Status](("unavailable", "degraded"))
            yield episodes.EpisodeRule(f"{self.key()}\n{part}", matching, bad, for_ms, 0, targets)

    def _trouble(self) -> tuple[Status, ...]:
        return TROUBLE_STATUSES[: TROUBLE_STATUSES.index(self.from_) + 1]

    def check(self) -> Iterator[Problem]:
        """A reason that never occurs with the rule's statuses is a mistake."""
        counted = (*self._trouble(), *(() if self.unknown is False else ("unknown",)))
        for reason in dict.fromkeys(self.reasons):
            if not set(BAD_REASONS[reason]).intersection(counted):
                what = f"{reason} comes with {' and '.join(BAD_REASONS[reason])}, and this rule counts"
                yield Problem("reasons", f"{what} {', '.join(counted)}; change from or unknown, or take it out")

    def check_matches(self, monitored: Iterable[Check], shared: Collection[str]) -> Iterator[Problem]:
        """A rule that never matches is a mistake, and so are chains for a service without chains."""
        if not any(self.matches(check) for check in monitored):
            what = "matches no monitored check; widen its services and chains, or configure a source for them"
            yield Problem("", what)
            return
        for number, service in enumerate(self.services):
            if self.chains and service in shared:
                what = f"{service} has no chain, and so does not match; give it a rule without chains"
                yield Problem(f"services[{number}]", what)


def can_be_shown(target: str) -> bool:
    """Whether the text is a target's name; otherwise it may be an address with a key."""
    return _TARGET_NAME.fullmatch(target) is not None


def _check_target_names(targets: dict[str, str]) -> Iterator[Problem]:
    for number, name in enumerate(targets, 1):
        if not can_be_shown(name):
            yield Problem("", f"name {number} is not allowed; it has to be up to 60 letters, digits, '_' and '-'")


def rules_without_rows(rules: Iterable[AlertRule]) -> list[AlertRule]:
    """The rules for all services that count `degraded`; if there are none, all rules for all services."""
    general = [rule for rule in rules if not rule.services and not rule.reasons]
    return [rule for rule in general if rule.from_ != "unavailable"] or general


def store_rule(targets: Iterable[str]) -> episodes.EpisodeRule:
    """The rule that reports to every target that the store cannot be written (M17)."""
    checks, statuses = frozenset((episodes.STORE,)), frozenset[Status](("unavailable",))
    return episodes.EpisodeRule("\nstore", checks, statuses, episodes.UNSTORED_MS, 0, tuple(targets))


class AlertsTable(Table, frozen=True):
    targets: Annotated[dict[str, Text], SECRET, ValueRule(_check_target_names)] = field(default_factory=dict)
    """Where messages go: names and [Apprise](https://appriseit.com/services/) addresses, such as `{ops =
    "mailto://…"}`. A rule has to use each. Never printed.
    Allowed: names of up to 60 letters, digits, `_` and `-`, to addresses, each of one recipient"""
    group_s: Annotated[float, Meta(ge=0, le=3600)] = 30
    """What happens within so many seconds is one message to each target."""
    give_up_s: Duration = 3600
    """How long a message is tried again."""
    rules: tuple[AlertRule, ...] = ()
    link: UrlOrNone = ""
    """Where the status page is; it stands in every message."""

    def check(self) -> Iterator[Problem]:
        if urlsplit(self.link).username is not None:
            yield Problem("link", "has a user or a password in it, and stands in every message")
        if self.targets and not self.rules:
            yield Problem("rules", "there is none, so no alert is ever sent; add [[alerts.rules]]")
        if self.rules and not self.targets:
            yield Problem("targets", "there is none, so no alert is ever sent; add [alerts.targets]")
        yield from self._check_unused_targets()
        yield from self._check_named_targets()
        yield from self._check_keys()

    def _check_unused_targets(self) -> Iterator[Problem]:
        if self.rules and all(rule.targets for rule in self.rules):
            named = {target for rule in self.rules for target in rule.targets}
            unnamed = (name for name in self.targets if name not in named and can_be_shown(name))
            yield from (Problem(f"targets.{name}", "no rule names it") for name in unnamed)

    def _check_named_targets(self) -> Iterator[Problem]:
        for number, rule in enumerate(self.rules):
            for m, target in enumerate(rule.targets):
                if self.targets and target not in self.targets:
                    yield Problem(f"rules[{number}].targets[{m}]", "no target in [alerts.targets] has this name")

    def _check_keys(self) -> Iterator[Problem]:
        first: dict[str, int] = {}
        for number, rule in enumerate(self.rules):
            before = first.setdefault(rule.key(), number)
            if before != number:
                is_of = "has the same name as" if rule.name else "duplicates"
                yield Problem(
                    f"rules[{number}]", f"{is_of} alerts.rules[{before}]; remove one, or give it another name"
                )


class AlertPolicy(Struct, frozen=True):
    """The rules, the targets' addresses by name, how long a message is retried, and the deployment for messages."""

    rules: episodes.EpisodeRules
    targets: dict[str, str]
    give_up_ms: int
    deployment: Deployment
    stand_ins: dict[StandIn, EntryKey]
    """What the rules report beside rows, and what each is to the monitor."""


def build_policy(alerts: AlertsTable, around: Around, of_features: Collection[StandIn] = ()) -> AlertPolicy:
    """The table as the monitor needs it; ``of_features`` is what these have reported beside rows."""
    plan, description = around.plan, around.description
    stand_ins = {
        StandIn("endpoint", of.name, of.chain_id): EntryKey("endpoint", of.name, of.chain_id) for of in around.endpoints
    }
    stand_ins |= {
        StandIn("source", of.name, of.checks[0].chain_id if len(of.checks) == 1 else None): EntryKey("source", of.name)
        for of in around.sources
    }
    chains = {StandIn("chain", of.name, of.id): EntryKey("chain", of.name, of.id) for of in description.chains}
    unjudged = _UNJUDGED | _JUDGED_BY_PLACES if of_features else _UNJUDGED
    rules = tuple(built for rule in alerts.rules for built in rule.build(plan.monitored, alerts.targets, unjudged))
    for rule in rules_without_rows(alerts.rules):
        after_ms = plan.limits.endpoint_alert_ms
        rules += tuple(rule.build_without_rows(chains, {*stand_ins, *of_features}, after_ms, alerts.targets))
    rules += (store_rule(alerts.targets),)
    stand_ins |= chains
    stand_ins[episodes.STORE] = STORE_KEY
    return AlertPolicy(
        episodes.EpisodeRules(rules, in_ms(alerts.group_s), plan.span.hold_ms),
        alerts.targets,
        in_ms(alerts.give_up_s),
        Deployment(
            {chain.id: chain.name for chain in description.chains},
            tuple(service.name for service in description.services),
            around.name,
            description.operator,
            alerts.link,
            around.has_admin_port,
            around.config,
            {service.name: service.effect for service in description.services if service.effect},
        ),
        {check: key for check, key in stand_ins.items() if any(check in rule.checks for rule in rules)},
    )


def check_rules(alerts: AlertsTable, monitored: frozenset[Check], services: Iterable[Service]) -> Iterator[Problem]:
    """Problems of the rules with the services and checks of the configuration."""
    names = {service.name: service.is_shared for service in services}
    shared = {name for name, is_shared in names.items() if is_shared}
    for number, rule in enumerate(alerts.rules):
        key = f"alerts.rules[{number}]"
        unknown = list(find_unknown_services(f"{key}.services", rule.services, names))
        matching = (problem.below(key) for problem in rule.check_matches(monitored, shared))
        yield from unknown or matching
