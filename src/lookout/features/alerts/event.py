"""The values of alerts: policy, facts, and a message as data for webhooks.

docs/operations.md documents the data; keys may only be added.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from lookout.base.instants import format_instant
from lookout.core.causes import split_cause
from lookout.core.model import NO_METRICS, Check, Metrics
from lookout.core.services import SERVICES
from lookout.features.alerts.rules import EpisodeRules, News
from lookout.features.outcome import EntryKey, StandIn

VERSION: Final = 1


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


DEPLOYMENT_OF_THE_FIVE: Final = Deployment({}, SERVICES.names)


class AlertPolicy(Struct, frozen=True):
    """The rules, the targets' addresses by name, how long a message is retried, and the deployment for messages."""

    rules: EpisodeRules
    targets: dict[str, str]
    give_up_ms: int
    deployment: Deployment = DEPLOYMENT_OF_THE_FIVE
    stand_ins: dict[StandIn, EntryKey] = {}
    """What the rules report beside rows, and what each is to the monitor."""


class AlertFacts(Struct, frozen=True):
    """Facts about a check for a message: why it is not current, its last comparison with instant and numbers, and
    without a head, its chain's RPC endpoints and their states, in words."""

    cause: str | None = None
    last_success_at: int | None = None
    last_metrics: Metrics = NO_METRICS
    endpoints: tuple[tuple[str, str], ...] = ()


Facts = Mapping[News, AlertFacts]


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


def make_event(kind: str, deployment: Deployment, items: Iterable[Item] = (), *, is_over: bool = False) -> AlertEvent:
    link = deployment.link or None
    return AlertEvent(VERSION, kind, is_over, deployment.name, deployment.operator, link, tuple(items))


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
