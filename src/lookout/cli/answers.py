"""What ``lookout init`` can be told: each entry is an option of the command and a question on a terminal."""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import click
import msgspec
from msgspec.structs import fields

from lookout.app.process import run
from lookout.base.clock import SystemClock
from lookout.base.known_chains import KNOWN_CHAINS, find_chain
from lookout.base.setting_types import Positive
from lookout.base.url import find_url_mistake
from lookout.cli.arguments import show_status
from lookout.cli.draft import Draft, DraftTable, name_chain, number_name
from lookout.config.alerts import AlertRule
from lookout.config.tables import StoreTable
from lookout.core.causes import OWN_CAUSES, code_of
from lookout.core.services import SERVICES
from lookout.monitor.probe import Probed, ProbedRow, probe_once
from lookout.protocols.lists import ListTable
from lookout.protocols.ppoi import NETWORKS
from lookout.protocols.registry import PROTOCOLS, kinds_for, load_plugins
from lookout.protocols.tables import KindTable
from lookout.store.kinds import ADDRESS_FORM, find_kind

_REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"  # of the launch
_CONFIRMATIONS: Final = 5
_CHAIN_FORM: Final = "ID,NAME,SECONDS[,test]"
_INDEXER_FORM: Final = "CHAIN=[KIND:]URL"
_ON_CHAINS_FORM: Final = "[CHAIN,CHAIN=]URL"
_FOR_CHAINS: Final = re.compile(r"([^=:/]+)=(.+)")
_KIND: Final = re.compile(r"(?:([a-z][a-z0-9_-]*):)?((?:[A-Za-z]+://|\$\{).*)")
_TARGET: Final = re.compile(r"(?:([A-Za-z0-9_-]+)=)?(.*)")


class AnswerError(Exception):
    """An answer that cannot be used. The text says why, without a part of an address."""


class Question(NamedTuple):
    text: str
    about: str = ""
    """The chain that it is about, as the option has it before the rest: "1="."""
    default: str = ""
    repeats: bool = False
    """Whether it is asked until there is no answer."""


class Entry(NamedTuple):
    """Something that a configuration can have."""

    option: str
    form: str
    help: str
    take: Callable[[Draft, str], Draft]
    """The draft with what an option or an answer says; AnswerError if that cannot be used."""
    ask: Callable[[Draft], Iterable[Question]]
    """The questions that a draft leads to. They depend only on the answers to earlier ones."""


def _take_chain(draft: Draft, text: str) -> Draft:
    given = [part.strip() for part in text.split(",")]
    keys: dict[str, Any] = {"id": _parse_chain(given[0])}
    if len(given) > 1:
        if len(given) not in (3, 4) or given[3:] not in ([], ["test"]):
            raise AnswerError(f"has to be {_CHAIN_FORM}")
        keys |= {"name": given[1], "block_time_s": _parse_number(given[2])}
        keys |= {"test_network": True} if given[3:] else {}
    return draft.put(DraftTable("chains", {**keys, "rpc": []}))


def _ask_chains(draft: Draft) -> Iterator[Question]:
    some = ", ".join(known.name for known in [*KNOWN_CHAINS.values()][:4])
    enter = "no more" if draft.find("chains") else "none"
    yield Question(f"A chain: its name or id ({some}, …), for another one {_CHAIN_FORM} (Enter: {enter})", repeats=True)


def _take_endpoint(draft: Draft, text: str) -> Draft:
    (chain_id,), url = _split_chains(text, None)
    table = draft.find_chain(chain_id)
    return draft.put(table.with_keys(rpc=[*table.keys["rpc"], url]))


def _ask_endpoints(draft: Draft) -> Iterator[Question]:
    for table in draft.find("chains"):
        name, number = name_chain(table), len(table.keys["rpc"]) + 1
        enter = "no more" if number > 1 else f"leave {name} out"
        text = f"{name}: RPC endpoint {number}, of three or more from different providers (Enter: {enter})"
        yield Question(text, f"{table.keys['id']}=", repeats=True)


def _take_indexer(service: str, draft: Draft, text: str) -> Draft:
    (chain_id,), rest = _split_chains(text, None)
    if chain_id in (table.keys["chain"] for table in draft.find(service)):
        raise AnswerError(f"chain {chain_id} has one already")
    match = _KIND.fullmatch(rest)
    kind, url = match.groups() if match else (None, rest)
    kinds = [known.name for known in kinds_for(SERVICES[service])]
    keys = {"chain": chain_id, "kind": kind or kinds[0], "url": url, "confirmations": _CONFIRMATIONS}
    table = DraftTable(service, keys)
    if kind:
        return draft.put(_take_own_key(table))
    if not draft.is_probing:
        raise AnswerError(f"name its kind, KIND:URL; it is one of {', '.join(kinds)}")
    if draft.narrow_to(table).problems():  # for which the whole draft is refused
        return draft.put(table)
    found = _try_kinds(draft, table, kinds)
    recognised = next((kind for kind, row in found.items() if fits(row)), None)
    if recognised is None:
        causes = "; ".join(f"{kind}: {row.found}" for kind, row in found.items())
        raise AnswerError(
            f"no known kind fits what chain {chain_id}'s answers ({causes}); name it, KIND:URL or json:URL#POINTER"
        )
    click.echo(f"recognised chain {chain_id}'s {service}: {recognised}, {found[recognised].found}", err=True)
    return draft.put(table.with_keys(kind=recognised))


def _ask_indexers(text: str, draft: Draft) -> Iterator[Question]:
    for chain_id, name in draft.chain_names().items():
        yield Question(f"{text.format(name)}: its address, or KIND:ADDRESS (Enter: none)", f"{chain_id}=")


def _take_own_key(table: DraftTable) -> DraftTable:
    """What is after the # of an address, which is never sent, as the one key that the kind adds."""
    kind = table.keys["kind"]
    load_plugins([kind])
    settings = PROTOCOLS[kind].settings if kind in PROTOCOLS else KindTable
    own = [field.name for field in fields(settings) if field.name not in ListTable.__struct_fields__]
    url, mark, value = table.keys["url"].partition("#")
    if not mark or len(own) != 1 or find_url_mistake(table.keys["url"]):
        return table
    return table.with_keys(url=url, **{own[0]: value})


def _take_ppoi(draft: Draft, text: str) -> Draft:
    chain_ids, url = _split_chains(text, [chain_id for chain_id in draft.chain_names() if chain_id in NETWORKS])
    return draft.put(DraftTable("ppoi", {"url": url, "required_list": _REQUIRED_LIST, "chains": chain_ids}))


def _take_messaging(draft: Draft, url: str) -> Draft:
    return draft.put(DraftTable("messaging", {"url": url}))


def _take_broadcasters(draft: Draft, text: str) -> Draft:
    chain_ids, url = _split_chains(text, [*draft.chain_names()])
    return draft.put(DraftTable("broadcasters", {"url": url, "chains": chain_ids}))


def _ask_on_chains(text: str, draft: Draft) -> Iterator[Question]:
    if draft.chain_names():
        yield Question(f"{text}: its address, or CHAIN,CHAIN=ADDRESS for some of the chains (Enter: none)")


def _take_store(key: str, draft: Draft, url: str) -> Draft:
    before = draft.find("store")
    return draft.put((before[0] if before else DraftTable("store", {})).with_keys(**{key: url}))


def _ask_read_url(draft: Draft) -> Iterator[Question]:
    store = draft.find("store")
    kind = find_kind(draft.narrow_to(store[0]).settings().store.url) if store else None
    if kind is not None and kind.name_database is not None:
        yield Question("The store's address for servers, with a role that can only read (Enter: the same)")


def _take_target(draft: Draft, text: str) -> Draft:
    before = draft.find("alerts")
    targets = before[0].keys["targets"] if before else {}
    match = _TARGET.fullmatch(text)
    name, address = match.groups() if match else (None, text)
    # Of what is no address no name is made: it may be a key.
    scheme = re.match(r"([A-Za-z0-9]{1,20})\w*://", address)
    name = name or number_name(scheme[1] if scheme else "target", "-", targets)
    if name in targets:
        raise AnswerError(f"{name} is there twice; give each target a name of its own")
    rule = AlertRule()
    rules = DraftTable("alerts.rules", {"from": rule.from_, "for_s": rule.for_s})  # for all that is watched
    return draft.put(DraftTable("alerts", {"targets": {**targets, name: address}})).put(rules)


def _ask_targets(draft: Draft) -> Iterator[Question]:
    text = "Alerts: an address of Apprise, such as mailto://user:password@example.org (docs/operations.md)"
    yield Question(f"{text} (Enter: {'no more' if draft.find('alerts') else 'none'})", repeats=True)


def _split_chains(text: str, default: list[int] | None) -> tuple[list[int], str]:
    """The chains before the =, and the rest. ``default``: the chains without a =; None: exactly one has to be named."""
    named = _FOR_CHAINS.fullmatch(text)
    if named is None:
        if default is None:
            raise AnswerError("has to be CHAIN=URL, and CHAIN a chain's name or id")
        return default, text
    chain_ids = [_parse_chain(name.strip()) for name in named[1].split(",")]
    if default is None and len(chain_ids) > 1:
        raise AnswerError("has to name one chain; repeat the option for another")
    return chain_ids, named[2]


def _parse_chain(text: str) -> int:
    """The id of a chain that is given by its id, or named, if it is known."""
    try:
        return msgspec.convert(text, Positive, strict=False)
    except msgspec.ValidationError:
        chain_id = find_chain(text)
    if chain_id is None:
        raise AnswerError(f"no chain is known by the name {text!r}; give its id")
    return chain_id


def _parse_number(text: str) -> float | str:
    """A number as it is to be written; other text stays text, which the configuration refuses."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def probe_drafts(*drafts: Draft) -> list[Probed]:
    """Ask the sources of all drafts at the same time."""
    settings = [draft.settings() for draft in drafts]

    async def ask() -> list[Probed]:
        return await asyncio.gather(*(probe_once(asked, SystemClock()) for asked in settings))

    with show_status(f"asking, for up to {settings[0].policy.probe_timeout_s:g} s"):
        return run(ask())


def select_rows(probed: Probed, table: DraftTable) -> list[ProbedRow]:
    """The rows that a table is about."""
    return [row for row in probed.rows if row.row.check.service == table.name and row.row.status != "unmonitored"]


def _try_kinds(draft: Draft, table: DraftTable, kinds: Iterable[str]) -> dict[str, ProbedRow]:
    """What each kind finds at an indexer's address. A kind that needs more than an address is not tried."""
    drafts = {kind: draft.narrow_to(table.with_keys(kind=kind)) for kind in kinds}
    usable = {kind: narrowed for kind, narrowed in drafts.items() if not narrowed.problems()}
    rows = (select_rows(probed, table)[0] for probed in probe_drafts(*usable.values()))
    return dict(zip(usable, rows, strict=True))


def fits(probed: ProbedRow) -> bool:
    """Whether the answer was understood, whatever it says. What this machine could not ask proves nothing."""
    code = code_of(probed.cause or "")
    return probed.cause is None or (code in OWN_CAUSES and code != "own_fault")


ENTRIES: Final = (
    Entry("chain", _CHAIN_FORM, "A chain that is not known, with its block time.", _take_chain, _ask_chains),
    Entry(
        "rpc", "CHAIN=URL", "An RPC endpoint of a chain (a name or id); three for each.", _take_endpoint, _ask_endpoints
    ),
    Entry(
        "indexer",
        _INDEXER_FORM,
        "Your own indexer of a chain; without KIND, the known kinds are tried.",
        partial(_take_indexer, "indexer"),
        partial(_ask_indexers, "Your own indexer of {}"),
    ),
    Entry(
        "hosted-indexer",
        _INDEXER_FORM,
        "The indexer of a chain that others run.",
        partial(_take_indexer, "hosted-indexer"),
        partial(_ask_indexers, "The indexer of {} that others run"),
    ),
    Entry(
        "ppoi",
        _ON_CHAINS_FORM,
        "The ppoi node; on all chains that it has a name for.",
        _take_ppoi,
        partial(_ask_on_chains, "The ppoi node (private proof of innocence)"),
    ),
    Entry(
        "messaging",
        "URL",
        "Your waku node.",
        _take_messaging,
        lambda _: [Question("Messaging: the REST address of your waku node (Enter: none)")],
    ),
    Entry(
        "broadcasters",
        _ON_CHAINS_FORM,
        "The waku node that hears broadcasters; on all chains.",
        _take_broadcasters,
        partial(_ask_on_chains, "The waku node that hears broadcasters"),
    ),
    Entry(
        "store",
        "URL",
        f"The store's address; it has to {ADDRESS_FORM}.",
        partial(_take_store, "url"),
        lambda _: [Question(f"Store: its address has to {ADDRESS_FORM}", default=StoreTable().url)],
    ),
    Entry(
        "store-read",
        "URL",
        "The address for servers, if the store is a database.",
        partial(_take_store, "read_url"),
        _ask_read_url,
    ),
    Entry("alert", "[NAME=]ADDRESS", "An address of Apprise that gets messages.", _take_target, _ask_targets),
)
