"""The draft that the options of ``lookout init`` describe."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from lookout.base.url import find_url_mistake
from lookout.cli.draft import (
    CONFIRMATIONS,
    Draft,
    DraftTable,
    build_alert_tables,
    build_ppoi_table,
    list_own_keys,
    name_target,
    parse_chain,
    parse_number,
)
from lookout.cli.trial import fits, try_kinds
from lookout.core.services import SERVICES
from lookout.protocols.ppoi import NETWORKS
from lookout.protocols.registry import kinds_for, load_plugins

_FOR_CHAINS: Final = re.compile(r"([^=:/]+)=(.+)")
_KIND: Final = re.compile(r"(?:([a-z][a-z0-9_-]*):)?((?:[A-Za-z]+://|\$\{).*)")
_TARGET_NAME: Final = re.compile("[A-Za-z0-9_-]+")


class OptionError(Exception):
    """Options that cannot be used; a sentence for each, without a part of an address."""

    def __init__(self, *messages: str) -> None:
        super().__init__(*messages)
        self.messages = messages


def build_draft(path: Path, options: Mapping[str, Any], *, is_probing: bool) -> Draft:
    draft = Draft(path, tuple(_build_chains(options["chain"], options["rpc"])))
    for name, given in (("indexer", options["indexer"]), ("hosted-indexer", options["hosted_indexer"])):
        for each in given:
            draft = draft.add(_build_indexer(draft, name, each, is_probing=is_probing))
    chain_ids = [*draft.chain_names()]
    if given := options["ppoi"]:
        on, url = _split_chains("--ppoi", given, [each for each in chain_ids if each in NETWORKS])
        draft = draft.add(build_ppoi_table(url, on))
    if given := options["messaging"]:
        draft = draft.add(DraftTable("messaging", {"url": given}))
    if given := options["broadcasters"]:
        on, url = _split_chains("--broadcasters", given, chain_ids)
        draft = draft.add(DraftTable("broadcasters", {"url": url, "chains": on}))
    store = {"url": options["store"], "read_url": options["store_read"]}
    if any(store.values()):
        draft = draft.add(DraftTable("store", {key: url for key, url in store.items() if url}))
    return draft.add(*_build_alerts(options["alert"]))


def _build_chains(chains: Iterable[str], endpoints: Iterable[str]) -> list[DraftTable]:
    tables: dict[int, DraftTable] = {}
    for text in chains:
        given = [part.strip() for part in text.split(",")]
        chain_id = _parse_chain_id("--chain", given[0])
        keys: dict[str, Any] = {"id": chain_id}
        if len(given) > 1:
            if len(given) not in (3, 4) or given[3:] not in ([], ["test"]):
                raise OptionError("--chain: has to be ID,NAME,SECONDS or ID,NAME,SECONDS,test")
            keys |= {"name": given[1], "block_time_s": parse_number(given[2])}
            keys |= {"test_network": True} if given[3:] else {}
        tables[chain_id] = DraftTable("chains", {**keys, "rpc": []})
    for text in endpoints:
        (chain_id,), url = _split_chains("--rpc", text, None)
        table = tables.get(chain_id) or DraftTable("chains", {"id": chain_id, "rpc": []})
        tables[chain_id] = table.with_keys(rpc=[*table.keys["rpc"], url])
    return list(tables.values())


def _split_chains(option: str, text: str, default: list[int] | None) -> tuple[list[int], str]:
    """The chains before the =, or those that are meant without one; None: exactly one has to be named."""
    named = _FOR_CHAINS.fullmatch(text)
    if named is None:
        if default is None:
            raise OptionError(f"{option}: has to be CHAIN=URL, and CHAIN a chain's name or id")
        return default, text
    chain_ids = [_parse_chain_id(option, each.strip()) for each in named[1].split(",")]
    if default is None and len(chain_ids) > 1:
        raise OptionError(f"{option}: has to name one chain; repeat the option for another")
    return chain_ids, named[2]


def _parse_chain_id(option: str, text: str) -> int:
    chain_id = parse_chain(text)
    if chain_id is None:
        raise OptionError(f"{option}: no chain is known by the name {text!r}; give its id")
    return chain_id


def _build_indexer(draft: Draft, service: str, text: str, *, is_probing: bool) -> DraftTable:
    option = f"--{service}"
    (chain_id,), rest = _split_chains(option, text, None)
    match = _KIND.fullmatch(rest)
    kind, url = match.groups() if match else (None, rest)
    kinds = [each.name for each in kinds_for(SERVICES[service])]
    keys = {"chain": chain_id, "kind": kind or kinds[0], "url": url, "confirmations": CONFIRMATIONS}
    table = DraftTable(service, keys)
    if kind:
        return _take_own_key(table)
    if not is_probing:
        raise OptionError(f"{option}: name its kind, {chain_id}=KIND:URL; it is one of {', '.join(kinds)}")
    if draft.narrow_to(table).problems():
        return table  # which the whole is refused for
    tried = try_kinds(draft, table).found
    recognised = next((kind for kind, row in tried.items() if fits(row)), None)
    if recognised is None:
        causes = "; ".join(f"{kind}: {row.found}" for kind, row in tried.items())
        raise OptionError(
            f"{option}: no known kind fits what chain {chain_id}'s answers ({causes}); name it, CHAIN=KIND:URL"
        )
    click.echo(f"{option}: recognised chain {chain_id}'s as {recognised}", err=True)
    return table.with_keys(kind=recognised)


def _take_own_key(table: DraftTable) -> DraftTable:
    """What is after the # of an address, which is never sent, as the one key that the kind adds."""
    load_plugins([table.keys["kind"]])
    url, mark, value = table.keys["url"].partition("#")
    own = list_own_keys(table.keys["kind"])
    if not mark or len(own) != 1 or find_url_mistake(table.keys["url"]):
        return table
    return table.with_keys(url=url, **{own[0]: value})


def _build_alerts(given: Iterable[str]) -> tuple[DraftTable, ...]:
    targets: dict[str, str] = {}
    unnamed = []
    for text in given:
        name, equals, address = text.partition("=")
        if not equals or not _TARGET_NAME.fullmatch(name):
            unnamed.append(text)
        elif name in targets:
            raise OptionError(f"--alert: {name} is there twice; give each target a name of its own")
        else:
            targets[name] = address
    for address in unnamed:
        targets[name_target(address, targets)] = address
    return build_alert_tables(targets) if targets else ()
