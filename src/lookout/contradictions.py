"""What only several settings together, or a closer look at one, can get wrong.

Nothing here shows a value that may have come from the environment.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from ipaddress import ip_network
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from yarl import URL

from lookout.alerts.sending import is_installed, recipients
from lookout.core.model import Check
from lookout.settings import (
    PPOI_NETWORKS,
    AlertRule,
    Alerts,
    Asked,
    Broadcasters,
    Chain,
    Indexer,
    Ppoi,
    Settings,
    Store,
)
from lookout.sources.addresses import ADDRESS_LENGTH, viewing_key
from lookout.unix_socket import is_unix, path_of

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\U0010ffff]*")
_CHAIN_ID: Final = re.compile(r"[1-9][0-9]{0,15}")
_TO_OUTVOTE_ONE: Final = 3  # endpoints of a chain (M8)
_TARGET_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,60}")


def contradictions(settings: Settings, broken: Set[str]) -> Iterator[str]:
    """Every problem, as ``key: what is wrong``. ``broken`` are the keys that could not be read, for which something
    stands in: of these, and of what is inside them, nothing is told."""
    for problem in _contradictions(settings, broken):
        key = problem.partition(": ")[0]
        if not any(key == other or key.startswith((f"{other}.", f"{other}[")) for other in broken):
            yield problem


def _contradictions(settings: Settings, broken: Set[str]) -> Iterator[str]:
    chain_ids = [chain.id for chain in settings.chains]
    for chain_id in _repeated(chain_ids):
        yield f"chains: {chain_id} is there twice"
    for key, named in _chains_named(settings):
        if min(chain_ids, default=1) > 0 and "chains" not in broken:  # all of them could be read
            yield from (
                f"{key}: there is no chain {n} in [[chains]]"
                for n in dict.fromkeys(named)
                if n not in chain_ids and n > 0
            )
        yield from (f"{key}: chain {chain_id} is there twice" for chain_id in _repeated(named))
    for key, of_chains in _keys_of_chains(settings):
        wrong = (name for name in of_chains if not _CHAIN_ID.fullmatch(name))
        yield from (f"{key}: {'an address' if '://' in name else repr(name)} is not a chain's id" for name in wrong)
    for key, url in _urls(settings):
        if not _is_http(url):
            yield f"{key}: has to be an http:// or https:// address with a host"
    for n, chain in enumerate(settings.chains):
        yield from _same_endpoints(f"chains[{n}]", chain)
    for key, headers in _headers(settings):
        if not all(_is_header(name, text) for name, text in headers.items()):
            yield f"{key}: has a name or a value that HTTP does not allow"
    for key, indexers in (("indexer", settings.indexer), ("hosted-indexer", settings.hosted_indexer)):
        for n, indexer in enumerate(indexers):
            if f"{key}[{n}].kind" not in broken:
                yield from _of_indexer(f"{key}[{n}]", indexer)
    for key, address, is_admins in _addresses(settings):
        if not is_host_port(address) and not (is_admins and (address == "" or is_unix(address))):
            yield f"{key}: has to be HOST:PORT" + (', unix:PATH or "" for none' if is_admins else "")
        if is_unix(address) and path_of(address) in ("", ".", "..") and is_admins:
            yield f"{key}: names no file after unix:"
    listen = settings.server.listen
    is_any_port = re.search(r":0+$", listen) is not None  # another one each time
    if settings.admin.server == listen and not is_any_port and broken.isdisjoint(("server", "server.listen")):
        yield "admin.server: has to be another address than server.listen"
    if not all(_is_network(proxy) for proxy in settings.server.trusted_proxies):
        yield "server.trusted_proxies: has to hold addresses and CIDR networks"
    if 86_400 % settings.history.bucket_s:
        yield f"history.bucket_s: {settings.history.bucket_s} does not divide a day of 86400 s"
    if 0 < settings.policy.blind_after_s < 0.001:
        yield "policy.blind_after_s: has to be 0 or at least 0.001"
    if settings.ppoi is not None and "ppoi.networks" not in broken:
        yield from _of_ppoi(settings.ppoi)
    if settings.broadcasters is not None:
        yield from _of_broadcasters(settings.broadcasters)
    yield from _of_store(settings.store, broken)
    if not _touches("alerts", broken):
        yield from _of_targets(settings.alerts)
        yield from _of_rules(settings, broken)


def doubts(settings: Settings) -> Iterator[str]:
    """What is allowed, and may still not be what is wanted, as ``key: what to know``."""
    for n, chain in enumerate(settings.chains):
        has = len(chain.rpc)
        if has < _TO_OUTVOTE_ONE:
            only = "only one endpoint" if has == 1 else f"only {has} endpoints"
            why = "so one that is wrong can make the chain's rows untrue; name three or more, of different providers"
            yield f"chains[{n}].rpc: chain {chain.id} has {only}, {why}"

    if _is_postgres(settings.store.url) and not settings.store.read_url:
        why = "so servers hold an address that may write; name one of a role that only reads"
        yield f"store.read_url: is not set, {why}"


def overwriting(settings: Settings, path: Path, broken: Set[str]) -> Iterator[str]:
    """Files that the record would be written into, although they are others'; ``path`` is the configuration's."""
    if not settings.monitor.record:
        return
    if "\0" in settings.monitor.record or not Path(settings.monitor.record).name:
        yield "monitor.record: names no file"
        return
    record = path.parent / settings.monitor.record
    others = {os.path.realpath(path): "the configuration"}
    url = settings.store.url
    if url.startswith("sqlite:") and "\0" not in url and broken.isdisjoint(("store", "store.url")):
        store = os.path.realpath(path.parent / url.removeprefix("sqlite:"))
        others |= {store + end: "the store" for end in ("", "-wal", "-shm", "-lock")}
    for written in (record, f"{record}.1"):
        if (whose := others.get(os.path.realpath(written))) is not None:
            yield f"monitor.record: would be written into {whose}; choose another file"


def unusable_targets(settings: Settings, broken: Set[str]) -> Iterator[str]:
    """What only Apprise can tell of the targets' addresses. It is slow to load: for those alone who send."""
    targets = settings.alerts.targets
    if _touches("alerts", broken) or not targets:
        return
    if not is_installed():
        yield "alerts.targets: Apprise, which sends to them, is not installed; docs/alerts.md says how"
        return
    for name, address in targets.items():
        if not _TARGET_NAME.fullmatch(name):
            continue
        reached = recipients(address)
        if reached == 0:
            yield f"alerts.targets.{name}: Apprise does not understand this address"
        elif reached > 1:  # of which one may accept what another does not, and get it again and again
            yield f"alerts.targets.{name}: reaches several; give each a target of its own"


def _of_store(store: Store, broken: Set[str]) -> Iterator[str]:
    if not re.match("sqlite:.", store.url) and not _is_postgres(store.url):
        yield "store.url: has to begin with sqlite: and a path, or be a postgresql:// address"
    if not store.read_url:
        return
    if not _is_postgres(store.read_url):
        yield "store.read_url: has to be a postgresql:// address; a SQLite file is read where store.url names it"
    elif broken.isdisjoint(("store", "store.url")):
        if not _is_postgres(store.url):
            yield "store.read_url: is for PostgreSQL alone, and store.url names something else"
        elif len({_database(store.url), _database(store.read_url)} - {""}) > 1:
            yield "store.read_url: names another database than store.url"


def _is_postgres(url: str) -> bool:
    return url.startswith(("postgresql://", "postgres://"))


def _database(url: str) -> str:
    """The database that an address names; "" if that is left to the role's name, or cannot be read."""
    try:
        parts = urlsplit(url)
        return parse_qs(parts.query).get("dbname", [unquote(parts.path.removeprefix("/"))])[-1]
    except ValueError:
        return ""


def _chains_named(settings: Settings) -> Iterable[tuple[str, list[int]]]:
    yield "indexer", [indexer.chain for indexer in settings.indexer]
    yield "hosted-indexer", [indexer.chain for indexer in settings.hosted_indexer]
    if settings.ppoi is not None:
        yield "ppoi.chains", list(settings.ppoi.chains)
        yield "ppoi.networks", _chain_ids(settings.ppoi.networks)
    if settings.broadcasters is not None:
        yield "broadcasters.chains", list(settings.broadcasters.chains)
        yield "broadcasters.members", _chain_ids(settings.broadcasters.members)
    yield from ((f"alerts.rules[{n}].chains", list(rule.chains)) for n, rule in enumerate(settings.alerts.rules))


def _urls(settings: Settings) -> Iterable[tuple[str, str]]:
    for n, chain in enumerate(settings.chains):
        yield from ((f"chains[{n}].rpc[{m}]", url) for m, url in enumerate(chain.rpc))
    yield from ((key, source.url) for key, source in _sources(settings, ".url"))
    if settings.ping.url:
        yield "ping.url", settings.ping.url


def _headers(settings: Settings) -> Iterable[tuple[str, dict[str, str]]]:
    yield from ((key, source.headers) for key, source in _sources(settings, ".headers"))


def _sources(settings: Settings, suffix: str) -> Iterable[tuple[str, Asked]]:
    yield from ((f"indexer[{n}]{suffix}", indexer) for n, indexer in enumerate(settings.indexer))
    yield from ((f"hosted-indexer[{n}]{suffix}", indexer) for n, indexer in enumerate(settings.hosted_indexer))
    named = (("ppoi", settings.ppoi), ("messaging", settings.messaging), ("broadcasters", settings.broadcasters))
    yield from ((name + suffix, source) for name, source in named if source is not None)


def _addresses(settings: Settings) -> Iterable[tuple[str, str, bool]]:
    """Keys that hold an address to listen on or to ask, and whether it is an admin port's."""
    yield "server.listen", settings.server.listen, False
    yield "admin.monitor", settings.admin.monitor, True
    yield "admin.server", settings.admin.server, True
    yield "edge.listen", settings.edge.listen, False
    yield "edge.origin", settings.edge.origin, False


def _same_endpoints(key: str, chain: Chain) -> Iterable[str]:
    """Three of which two are one would let that one lie (M8)."""
    first: dict[tuple[object, ...], int] = {}
    for m, url in enumerate(chain.rpc):
        before = first.setdefault(_as_sent(url), m) if _is_http(url) else m
        if before != m:
            yield f"{key}.rpc[{m}]: is the same endpoint as {key}.rpc[{before}]; name another one, or leave it out"


def _as_sent(url: str) -> tuple[object, ...]:
    """What a request to this address is made of, however it is written. A dot at the end of its host, and slashes at
    the end of its path, make no difference."""
    sent = URL(url)
    host, path = (sent.raw_host or "").rstrip("."), sent.raw_path.rstrip("/")
    return sent.scheme, sent.raw_user or "", sent.raw_password or "", host, sent.port, path, sent.raw_query_string


def _of_indexer(key: str, indexer: Indexer) -> Iterable[str]:
    if indexer.kind == "json" and not indexer.pointer.startswith("/"):
        yield f'{key}.pointer: kind "json" needs a JSON Pointer such as "/status/lastBlock"'
    if indexer.kind == "json" and re.search(r"~(?![01])", indexer.pointer):
        yield f"{key}.pointer: has a ~ that is not part of ~0 or ~1"
    if indexer.kind != "json" and indexer.pointer:
        yield f'{key}.pointer: is for kind "json" alone'
    if indexer.kind != "subgraph" and indexer.deployment:
        yield f'{key}.deployment: is for kind "subgraph" alone'


def _of_ppoi(ppoi: Ppoi) -> Iterable[str]:
    named = {*PPOI_NETWORKS, *_chain_ids(ppoi.networks)}
    for chain_id in dict.fromkeys(ppoi.chains):
        if chain_id not in named:
            yield f"ppoi.networks: has no name for chain {chain_id}, and none is built in"


def _of_broadcasters(broadcasters: Broadcasters) -> Iterable[str]:
    if "{chainId}" not in broadcasters.content_topic:
        yield "broadcasters.content_topic: has to contain {chainId}"
    for chain, addresses in broadcasters.members.items():
        for n, address in enumerate(addresses):
            if viewing_key(address) is None:
                what = f"is no 0zk1 address, or mistyped; copy all {ADDRESS_LENGTH} characters"
                yield f"broadcasters.members.{chain}[{n}]: {what}"


def _of_targets(alerts: Alerts) -> Iterable[str]:
    for n, name in enumerate(alerts.targets, 1):
        if not _TARGET_NAME.fullmatch(name):  # it may be an address, with its key: it is not shown
            yield f"alerts.targets: name {n} is not allowed; it has to be up to 60 letters, digits, '_' and '-'"
    if alerts.rules and all(rule.targets for rule in alerts.rules):
        named = {target for rule in alerts.rules for target in rule.targets}
        unnamed = (name for name in alerts.targets if name not in named and _TARGET_NAME.fullmatch(name))
        yield from (f"alerts.targets.{name}: no rule tells it" for name in unnamed)
    if alerts.targets and not alerts.rules:
        yield "alerts.rules: there is none, and so nothing to tell; add [[alerts.rules]]"
    if alerts.rules and not alerts.targets:
        yield "alerts.targets: there is none, and so nobody to tell; add [alerts.targets]"


def _of_rules(settings: Settings, broken: Set[str]) -> Iterable[str]:
    first: dict[str, int] = {}
    sources = ("chains", "ppoi", "indexer", "hosted-indexer", "messaging", "broadcasters")
    is_read_whole = not any(_touches(table, broken) for table in sources)
    monitored = settings.plan().monitored if is_read_whole else frozenset()
    for n, rule in enumerate(settings.alerts.rules):
        key = f"alerts.rules[{n}]"
        for m, target in enumerate(rule.targets):
            if settings.alerts.targets and target not in settings.alerts.targets:
                yield f"{key}.targets[{m}]: no target in [alerts.targets] has this name"
        if is_read_whole:
            yield from _unmatched(key, rule, monitored, {chain.id for chain in settings.chains})
        before = first.setdefault(rule.key(), n)
        if before != n and rule.name:
            yield f"{key}.name: is that of alerts.rules[{before}] as well; give it another one"
        elif before != n:
            yield f"{key}: finds the same bad as alerts.rules[{before}]; leave one out, or give it a name"


def _unmatched(key: str, rule: AlertRule, monitored: Set[Check], chain_ids: Set[int]) -> Iterable[str]:
    """Whoever names a service or a chain expects to be told of it."""
    matched = [check for check in monitored if rule.matches(check)]
    if not matched:
        yield f"{key}: matches no monitored check; widen its services and chains, or configure a source for them"
        return
    for service in dict.fromkeys(rule.services):
        if all(check.service != service for check in matched):
            if service == "messaging" and rule.chains:
                yield f"{key}.services: messaging has no chain, and so does not match; give it a rule without chains"
            else:
                yield f"{key}.services: {service} matches no monitored check; take it out, or configure its source"
    for chain_id in dict.fromkeys(rule.chains):
        if chain_id in chain_ids and all(check.chain_id != chain_id for check in matched):
            yield f"{key}.chains: {chain_id} matches no monitored check; take it out, or configure a source for it"


def _touches(table: str, broken: Set[str]) -> bool:
    return any(re.split(r"[.\[]", key)[0] == table for key in broken)


def _repeated(values: list[int]) -> list[int]:
    return [value for value, times in Counter(values).items() if times > 1 and value > 0]


def _chain_ids(keys: Iterable[str]) -> list[int]:
    """Chains' numbers that had to be written as text, as keys of tables are."""
    return [int(key) for key in keys if _CHAIN_ID.fullmatch(key)]


def _keys_of_chains(settings: Settings) -> Iterable[tuple[str, Iterable[str]]]:
    if settings.ppoi is not None:
        yield "ppoi.networks", settings.ppoi.networks
    if settings.broadcasters is not None:
        yield "broadcasters.members", settings.broadcasters.members


def _is_header(name: str, text: str) -> bool:
    """Judged as it is sent: without the newline that a value from the environment often ends in."""
    return _HEADER_NAME.fullmatch(name) is not None and _HEADER_VALUE.fullmatch(text.strip()) is not None


def _is_http(url: str) -> bool:
    try:
        URL(url)  # as it will be sent
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and not re.search(r"\s", url)
        )
    except ValueError:
        return False


def is_host_port(address: str) -> bool:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[\w-]+(?:\.[\w-]+)*\.?):([0-9]{1,5})", address, re.ASCII)
    return match is not None and int(match[2]) <= 65_535


def _is_network(text: str) -> bool:
    """An address with a zone is refused: a zone may hold any character, also a quotation mark."""
    try:
        ip_network(text)
    except ValueError:
        return False
    return "%" not in text
