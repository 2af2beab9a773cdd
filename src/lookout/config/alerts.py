"""The tables of alerts: who is alerted, and by which rules."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Final

from msgspec import Meta, field

from lookout.base.problem import Problem
from lookout.base.setting_types import Duration, DurationOrZero, Positive, Rule, Table, Text
from lookout.config.tables import in_ms
from lookout.core import episodes
from lookout.core.model import Check
from lookout_reader.statuses import TROUBLE_STATUSES, TroubleStatus

_TARGET_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")


class AlertRule(Table, frozen=True):
    name: str = ""
    services: tuple[Text, ...] = ()
    chains: tuple[Positive, ...] = ()
    from_: TroubleStatus = field(default="unavailable", name="from")
    unknown: bool = False
    for_s: DurationOrZero = 300
    remind_s: DurationOrZero = 3600
    targets: tuple[Text, ...] = ()

    def key(self) -> str:
        """What its episodes are found by, also after it was changed: its name, or what it finds bad."""
        if self.name:
            return self.name
        where = f"{','.join(sorted(self.services))}/{','.join(map(str, sorted(self.chains)))}"
        return f"{where}/{self.from_}/{self.unknown}"

    def matches(self, check: Check) -> bool:
        return (not self.services or check.service in self.services) and (
            not self.chains or check.chain_id in self.chains
        )

    def build(self, monitored: Iterable[Check], all_targets: Iterable[str]) -> episodes.Rule:
        """The rule as the core needs it."""
        bad = TROUBLE_STATUSES[: TROUBLE_STATUSES.index(self.from_) + 1]
        return episodes.Rule(
            self.key(),
            frozenset(check for check in monitored if self.matches(check)),
            frozenset((*bad, "unknown") if self.unknown else bad),
            in_ms(self.for_s),
            in_ms(self.remind_s),
            self.targets or tuple(all_targets),
        )

    def check_matches(
        self, monitored: Iterable[Check], chain_ids: Collection[int], shared: Collection[str]
    ) -> Iterator[Problem]:
        """A service or a chain that is named and never matches is a mistake."""
        matched = [check for check in monitored if self.matches(check)]
        if not matched:
            what = "matches no monitored check; widen its services and chains, or configure a source for them"
            yield Problem("", what)
            return
        for service in dict.fromkeys(self.services):
            if all(check.service != service for check in matched):
                if self.chains and service in shared:
                    what = f"{service} has no chain, and so does not match; give it a rule without chains"
                else:
                    what = f"{service} matches no monitored check; take it out, or configure its source"
                yield Problem("services", what)
        for chain_id in dict.fromkeys(self.chains):
            if chain_id in chain_ids and all(check.chain_id != chain_id for check in matched):
                what = f"{chain_id} matches no monitored check; take it out, or configure a source for it"
                yield Problem("chains", what)


def is_target_name(name: str) -> bool:
    return _TARGET_NAME.fullmatch(name) is not None


def _check_target_names(targets: dict[str, str]) -> Iterator[Problem]:
    for number, name in enumerate(targets, 1):
        if not is_target_name(name):  # it may be an address, with its key: it is not shown
            yield Problem("", f"name {number} is not allowed; it has to be up to 60 letters, digits, '_' and '-'")


class Alerts(Table, frozen=True):
    targets: Annotated[dict[str, Text], Rule(_check_target_names)] = field(default_factory=dict)
    group_s: Annotated[float, Meta(ge=0, le=3600)] = 30
    give_up_s: Duration = 3600
    rules: tuple[AlertRule, ...] = ()

    def checks(self) -> Iterable[Iterable[Problem]]:
        return self._check_unused_targets(), self._check_both_or_none(), self._check_named_targets(), self._check_keys()

    def _check_unused_targets(self) -> Iterator[Problem]:
        if self.rules and all(rule.targets for rule in self.rules):
            named = {target for rule in self.rules for target in rule.targets}
            unnamed = (name for name in self.targets if name not in named and is_target_name(name))
            yield from (Problem(f"targets.{name}", "no rule tells it") for name in unnamed)

    def _check_both_or_none(self) -> Iterator[Problem]:
        if self.targets and not self.rules:
            yield Problem("rules", "there is none, and so nothing to tell; add [[alerts.rules]]")
        if self.rules and not self.targets:
            yield Problem("targets", "there is none, and so nobody to tell; add [alerts.targets]")

    def _check_named_targets(self) -> Iterator[Problem]:
        for number, rule in enumerate(self.rules):
            for m, target in enumerate(rule.targets):
                if self.targets and target not in self.targets:
                    yield Problem(f"rules[{number}].targets[{m}]", "no target in [alerts.targets] has this name")

    def _check_keys(self) -> Iterator[Problem]:
        first: dict[str, int] = {}
        for number, rule in enumerate(self.rules):
            before = first.setdefault(rule.key(), number)
            if before != number and rule.name:
                yield Problem(
                    f"rules[{number}].name", f"is that of alerts.rules[{before}] as well; give it another one"
                )
            elif before != number:
                what = f"finds the same bad as alerts.rules[{before}]; leave one out, or give it a name"
                yield Problem(f"rules[{number}]", what)
