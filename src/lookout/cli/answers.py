"""What ``lookout init`` asks for: each question is an option of the command, and asked on a terminal."""

import asyncio
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
import msgspec
from msgspec.structs import fields

from lookout.app.probe import Probed, ProbedRow, probe_once
from lookout.app.process import log_crashes_alone, run
from lookout.base.clock import SystemClock
from lookout.base.known_chains import KNOWN_CHAINS, find_chain, suggest_chain
from lookout.base.setting_types import Positive
from lookout.base.url import find_url_mistake
from lookout.cli.arguments import show_status
from lookout.cli.draft import OWN, Draft, DraftTable, name_chain, number_name
from lookout.core.causes import OWN_CAUSES, code_of
from lookout.core.model import Blocks
from lookout.core.services import SERVICES
from lookout.protocols.client.request import KindTable
from lookout.protocols.lists import ListTable
from lookout.protocols.ppoi import NETWORKS
from lookout.protocols.registry import PROTOCOLS, kinds_for, load_plugins
from lookout.store.kinds import ADDRESS_FORM

_REQUIRED_LIST: Final = "efc6ddb59c098a13fb2b618fdae94c1c3a807abc8fb1837c93620c9143ee9e88"  # of the launch
_CONFIRMATIONS: Final = 5  # of most indexers; a row that is so far behind is current in any case (S3)
_SYSTEM_STORE: Final = "sqlite:/var/lib/lookout/lookout.db"
# How a service of one's own is asked that is named like this, or has this for its kind.
PRESETS: Final[dict[str, dict[str, Any]]] = {
    "bundler": {"kind": "jsonrpc", "method": "eth_supportedEntryPoints", "pointer": "/0"},
    "paymaster": {"kind": "jsonrpc", "method": "pm_supportedEntryPoints", "pointer": "/0"},
    "relayer": {"kind": "http"},
    "rpc": {"kind": "evm"},
}
# What users notice if a service that is named like this fails.
_EFFECTS: Final = {
    "bundler": {"effect": "sending may fail"},
    "paymaster": {"effect": "sending without the network's own coin may fail"},
    "relayer": {"effect": "sending may fail"},
}
_CHAIN_FORM: Final = "ID,NAME,SECONDS[,test]"
_INDEXER_FORM: Final = "CHAIN=[KIND:]URL"
_SERVICE_FORM: Final = "NAME[@CHAIN,CHAIN]=[KIND:]URL"
_ON_CHAINS_FORM: Final = "[CHAIN,CHAIN=]URL"
_FOR_SERVICE: Final = re.compile(r"([^@=:/]+)(?:@([^=:/]+))?=(.+)")
_FOR_CHAINS: Final = re.compile(r"([^=:/]+)=(.+)")
_KIND: Final = re.compile(r"(?:([a-z][a-z0-9_-]*):)?((?:[A-Za-z]+://|\$\{).*)")
_TARGET: Final = re.compile(r"(?:([A-Za-z0-9_-]+)=)?(.*)")


class AnswerError(Exception):
    """An answer that cannot be used. The text says why, without a part of an address."""


class Question(NamedTuple):
    """Something that a configuration can have: an option, and a question in the same form."""

    option: str
    form: str
    help: str
    take: Callable[[Draft, str], Draft]
    """The draft with what an option or an answer says; AnswerError if that cannot be used."""
    repeats: bool = False


def begin(path: Path, *, is_probing: bool) -> Draft:
    """An empty draft; of a file that a unit of systemd reads, with a store where the unit may write."""
    draft = Draft(path, is_probing)
    return _take_key("store", "url", draft, _SYSTEM_STORE) if draft.is_of_unit else draft


def _take_chain(draft: Draft, text: str) -> Draft:
    given = [part.strip() for part in text.split(",")]
    keys: dict[str, Any] = {"id": _parse_chain(given[0])}
    if len(given) > 1:
        if len(given) not in (3, 4) or given[3:] not in ([], ["test"]):
            raise AnswerError(f"has to be {_CHAIN_FORM}")
        keys |= {"name": given[1], "block_time_s": _parse_number(given[2])}
        keys |= {"test_network": True} if given[3:] else {}
    elif keys["id"] not in KNOWN_CHAINS:
        raise AnswerError(f"Lookout knows nothing about chain {keys['id']}; give {_CHAIN_FORM}")
    return draft.put(DraftTable("chains", {**keys, "rpc": []}))


def _take_endpoint(draft: Draft, text: str) -> Draft:
    (chain_id,), url = _split_chains(text, None)
    table = draft.find_chain(chain_id)
    if chain_id not in KNOWN_CHAINS and "name" not in table.keys:
        raise AnswerError(f"Lookout knows nothing about chain {chain_id}; give {_CHAIN_FORM} first")
    return draft.put(table.with_keys(rpc=[*table.keys["rpc"], url]))


def _take_indexer(service: str, draft: Draft, text: str) -> Draft:
    (chain_id,), rest = _split_chains(text, None)
    if chain_id in (table.keys["chain"] for table in draft.find(service)):
        raise AnswerError(f"chain {chain_id} has one already")
    _require_endpoints(draft, chain_id)
    kind, url = _split_kind(rest)
    kinds = [kind] if kind else [known.name for known in kinds_for(SERVICES[service])]
    keys = {"chain": chain_id, "kind": "", "url": url, "confirmations": _CONFIRMATIONS}
    tables = [DraftTable(service, _take_own_key({**keys, "kind": known})) for known in kinds]
    if not draft.is_probing and not kind:
        raise AnswerError(f"name its kind, KIND:URL; it is one of {', '.join(kinds)}")
    tried = _try(draft, tables)
    if not tried:  # none that can be asked: for which the whole draft is refused
        return draft.put(tables[0])
    table, row = next((pair for pair in tried if fits(pair[1])), tried[0])
    if not kind and not fits(row):
        causes = "; ".join(f"{table.keys['kind']}: {row.found}" for table, row in tried)
        raise AnswerError(
            f"no known kind fits the answers for chain {chain_id} ({causes}); name it, KIND:URL or json:URL#POINTER"
        )
    if not kind:
        click.echo(f"recognised chain {chain_id}'s {service}: {table.keys['kind']}, {row.found}", err=True)
    return draft.put(table)


def _take_own_key(keys: dict[str, Any]) -> dict[str, Any]:
    """The keys of a table, with what is after the # of its address, which is never sent, as the one that its kind
    needs or, if it needs none, adds."""
    load_plugins([keys["kind"]])
    settings = PROTOCOLS[keys["kind"]].settings if keys["kind"] in PROTOCOLS else KindTable
    own = [field for field in fields(settings) if field.name not in ListTable.__struct_fields__]
    names = [field.name for field in own if field.required] or [field.name for field in own]
    name = "pointer" if "pointer" in names else names[0] if len(names) == 1 else None
    url, mark, value = keys["url"].partition("#")
    if not mark and any(field.required and field.name not in keys for field in own):
        raise AnswerError(f"needs its {name} after a #: {keys['kind']}:URL#{str(name).upper()}")
    return keys if not mark or name is None or find_url_mistake(keys["url"]) else {**keys, "url": url, name: value}


def _take_service(draft: Draft, text: str) -> Draft:
    match = _FOR_SERVICE.fullmatch(text)
    if match is None:
        raise AnswerError(f"has to be {_SERVICE_FORM}")
    name = "-".join(match[1].lower().split())
    for chain in match[2].split(",") if match[2] else [None]:
        draft = _take_check(draft, name, None if chain is None else _parse_chain(chain.strip()), match[3])
    return draft


def _take_check(draft: Draft, name: str, chain_id: int | None, text: str) -> Draft:
    kind, url = _split_kind(text)
    kind = kind or (name if name in PRESETS else "http")
    if chain_id is not None:
        _require_endpoints(draft, chain_id)
    of_chain = {} if chain_id is None else {"chain": chain_id}
    check = _take_own_key({**of_chain, **PRESETS.get(kind, {"kind": kind}), "url": url})
    if chain_id is None and check["kind"] in PROTOCOLS and PROTOCOLS[check["kind"]].answer is Blocks:
        raise AnswerError(f"is compared with the head of its chain: write {name}@CHAIN=URL")
    before = next(
        (table for table in draft.find(OWN) if table.service == name),
        DraftTable(OWN, {"name": name, **_EFFECTS.get(name, {})}),
    )
    return draft.put(before.with_keys(checks=[*before.keys.get("checks", ()), check]))


def _take_ppoi(draft: Draft, text: str) -> Draft:
    chain_ids, url = _split_chains(text, [chain_id for chain_id in draft.chain_names() if chain_id in NETWORKS])
    return draft.put(DraftTable("ppoi", {"url": url, "required_list": _REQUIRED_LIST, "chains": chain_ids}))


def _take_messaging(draft: Draft, url: str) -> Draft:
    return draft.put(DraftTable("messaging", {"url": url}))


def _take_broadcasters(draft: Draft, text: str) -> Draft:
    chain_ids, url = _split_chains(text, [*draft.chain_names()])
    return draft.put(DraftTable("broadcasters", {"url": url, "chains": chain_ids}))


def _take_key(name: str, key: str, draft: Draft, text: str) -> Draft:
    """One key of a table that is there once."""
    before = draft.find(name)
    return draft.put((before[0] if before else DraftTable(name, {})).with_keys(**{key: text}))


def _take_target(draft: Draft, text: str) -> Draft:
    before = draft.find("alerts")
    targets = before[0].keys["targets"] if before else {}
    match = _TARGET.fullmatch(text)
    name, address = match.groups() if match else (None, text)
    # Of what is no address no name is made: it may be a key.
    scheme = re.match(r"([A-Za-z0-9]{1,20})\w*://", address)
    name = name or number_name(scheme[1] if scheme else "target", "-", targets)
    if name in targets:
        raise AnswerError(f"{name} is listed twice; give each target a name of its own")
    rules = DraftTable("alerts.rules", {"from": "degraded", "for_s": 300})  # for all that is watched
    return draft.put(DraftTable("alerts", {"targets": {**targets, name: address}})).put(rules)


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
        near = suggest_chain(text)
        hint = f"did you mean {near}? Otherwise give its id" if near else "give its id"
        raise AnswerError(f"no known chain is called {text!r}; {hint}")
    return chain_id


def _require_endpoints(draft: Draft, chain_id: int) -> None:
    if chain_id not in draft.chain_names():
        raise AnswerError(f"{name_chain(draft.find_chain(chain_id))} has no RPC endpoint; name one first")


def _split_kind(text: str) -> tuple[str | None, str]:
    match = _KIND.fullmatch(text)
    return (match[1], match[2]) if match else (None, text)


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

    with show_status(f"asking, for up to {settings[0].policy.probe_timeout_s:g} s"), log_crashes_alone():
        return run(ask())


def select_rows(probed: Probed, table: DraftTable) -> list[ProbedRow]:
    """The rows that a table is about."""
    return [row for row in probed.rows if row.row.check.service == table.service and row.row.status != "unmonitored"]


def _try(draft: Draft, tables: Iterable[DraftTable]) -> list[tuple[DraftTable, ProbedRow]]:
    """The tables that can be asked, with their first row; none if nothing is to be asked."""
    usable = [table for table in tables if draft.is_probing and not draft.narrow_to(table).problems()]
    probed = probe_drafts(*map(draft.narrow_to, usable)) if usable else []
    return [(table, select_rows(found, table)[0]) for table, found in zip(usable, probed, strict=True)]


def fits(probed: ProbedRow) -> bool:
    """Whether the answer was understood, whatever it says. What this machine could not ask proves nothing."""
    code = code_of(probed.cause or "")
    return probed.cause is None or (code in OWN_CAUSES and code != "own_fault")


QUESTIONS: Final = (
    Question(
        "chain", _CHAIN_FORM, "A chain that Lookout does not know, with its block time.", _take_chain, repeats=True
    ),
    Question(
        "rpc",
        "CHAIN=URL",
        "An RPC endpoint of a chain (a name or id); three or more for each, from different providers.",
        _take_endpoint,
        repeats=True,
    ),
    Question(
        "indexer",
        _INDEXER_FORM,
        "Your own indexer of a chain; without KIND, the known kinds are tried.",
        partial(_take_indexer, "indexer"),
        repeats=True,
    ),
    Question(
        "hosted-indexer",
        _INDEXER_FORM,
        "The indexer of a chain that others run.",
        partial(_take_indexer, "hosted-indexer"),
        repeats=True,
    ),
    Question(
        "service",
        _SERVICE_FORM,
        f"A service of your own; KIND is a kind, or {', '.join(PRESETS)}; without it, NAME decides it, or it is http.",
        _take_service,
        repeats=True,
    ),
    Question("ppoi", _ON_CHAINS_FORM, "The ppoi node; on all chains that it has a name for.", _take_ppoi),
    Question("messaging", "URL", "Your waku node, for messaging.", _take_messaging),
    Question(
        "broadcasters", _ON_CHAINS_FORM, "The waku node that hears broadcasters; on all chains.", _take_broadcasters
    ),
    Question("store", "URL", f"The store's address; it has to {ADDRESS_FORM}.", partial(_take_key, "store", "url")),
    Question(
        "store-read",
        "URL",
        "The address for servers, if the store is a database.",
        partial(_take_key, "store", "read_url"),
    ),
    Question(
        "alert",
        "[NAME=]ADDRESS",
        "An address of Apprise that gets messages, such as mailto://user:password@example.org.",
        _take_target,
        repeats=True,
    ),
    Question("title", "TEXT", "The title of the status page.", partial(_take_key, "page", "title")),
    Question("operator", "TEXT", "Who runs this, on the status page.", partial(_take_key, "page", "operator")),
    Question("contact", "TEXT", "An address or URL on the status page.", partial(_take_key, "page", "contact")),
)
