"""The questions of ``lookout init`` on a terminal: each answer is checked, and each source asked, as it comes."""

import readline  # noqa: F401  it lets people edit what they type
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace
from rich.console import Console

from lookout.app.stores import reach_store
from lookout.base.known_chains import KNOWN_CHAINS
from lookout.cli.draft import (
    CONFIRMATIONS,
    DEFAULT_STORE,
    REQUIRED_LIST,
    Draft,
    DraftTable,
    alert_tables,
    name_chain,
    name_target,
    own_keys,
    parse_chain,
    parse_number,
    ppoi_table,
)
from lookout.cli.probe import explain_causes, explain_row
from lookout.cli.template import read_sections
from lookout.cli.trial import fits, probe_draft, rows_of, try_kinds
from lookout.cli.variables import can_be_written, find_secret
from lookout.core.causes import code_of
from lookout.core.services import SERVICES
from lookout.monitor.probe import ProbedRow
from lookout.protocols.ppoi import NETWORKS
from lookout.protocols.registry import kinds_for, load_plugins
from lookout.store.kinds import kind_of
from lookout.store.protocol import StoreError

_WAKU: Final = "the REST address of your waku node"

Complete = Callable[[DraftTable], DraftTable | None]
"""Asks for what a table with the right address still needs; None: ask for another address."""


class Interview:
    def __init__(self, draft: Draft, *, is_probing: bool) -> None:
        self.draft = draft
        self._is_probing = is_probing

    def run(self) -> Draft:
        """Ask for everything; the draft of the answers."""
        _say("Enter leaves out what you do not watch; Ctrl-C ends this, and nothing is written.")
        _say("In any answer, ${NAME} stands for the environment variable NAME.")
        self._ask_chains()
        names = self.draft.chain_names()
        for chain_id, name in names.items():
            self._ask_indexer("indexer", chain_id, f"Your own indexer of {name}: its address")
            self._ask_indexer("hosted-indexer", chain_id, f"The indexer of {name} that others run: its address")
        if names:
            ppoi = ppoi_table("", [*names], names)
            self._ask_source("The ppoi node (private proof of innocence): its address", ppoi, self._complete_ppoi)
        self._ask_source(f"Messaging: {_WAKU}", DraftTable("messaging", {"url": ""}), lambda table: table)
        if names:
            same = ', or "same"' if self.draft.named("messaging") else ""
            broadcasters = DraftTable("broadcasters", {"url": "", "chains": [*names]})
            self._ask_source(f"Broadcasters: {_WAKU}{same}", broadcasters, self._complete_broadcasters)
        self._ask_store()
        if self.draft.is_watching():
            self._ask_alerts()
        return self.draft

    # Chains

    def _ask_chains(self) -> None:
        some = ", ".join(known.name for known in [*KNOWN_CHAINS.values()][:6])
        _say(f"\nChains: by name or id, with commas between them, such as {some}.")
        found: list[int] | None = None
        while found is None:
            found = _find_chains(_ask("Chains"))
        for chain_id in found:
            self._ask_chain(chain_id)

    def _ask_chain(self, chain_id: int) -> None:
        chain = DraftTable("chains", {"id": chain_id, **self._ask_facts(chain_id), "rpc": []})
        name = name_chain(chain)
        _say(f"\n{name}: its RPC endpoints, one after another, three or more of different providers.")
        while url := _ask(
            f"Endpoint {len(chain.keys['rpc']) + 1} (Enter: {'no more' if chain.keys['rpc'] else 'none'})"
        ):
            longer = self._with_address(url, f"{name} rpc {len(chain.keys['rpc']) + 1}", _add_endpoint(chain))
            if longer is not None and self._keeps_endpoint(longer):
                chain = longer
        if chain.keys["rpc"]:
            self.draft = self.draft.adding(chain)
        else:
            _say(f"{name} is left out: without an endpoint there is no head.")

    def _ask_facts(self, chain_id: int) -> dict[str, Any]:
        """What has to be said of a chain that is not known."""
        if chain_id in KNOWN_CHAINS:
            return {}
        _say(f"\nLookout knows nothing about chain {chain_id}.")
        while True:
            facts = {"name": _ask("Its name"), "block_time_s": parse_number(_ask("Seconds between its blocks"))}
            if click.confirm("Is it a test network?", default=False):
                facts["test_network"] = True
            chain = DraftTable("chains", {"id": chain_id, **facts, "rpc": ["http://localhost"]})
            if not _complain(self.draft.adding(chain)):
                return facts

    def _keeps_endpoint(self, chain: DraftTable) -> bool:
        """Ask the endpoints of a chain, and say how the newest compares."""
        if not self._is_probing:
            return True
        probed = probe_draft(self.draft.only_about(chain))
        heads = probed.chains[0]
        newest = heads.endpoints[-1]
        is_first = len(heads.endpoints) == 1
        if newest.cause is not None:
            _say_found(newest.found, newest.took_ms)
            return _keeps_anyway(newest.cause)
        _say_found(f"chain {chain.keys['id']}, {newest.block if is_first else newest.found}", newest.took_ms)
        if not is_first and not heads.has_head:
            _say_found(heads.found)
        return newest.is_fine or not heads.has_head or _keeps_anyway()

    # Services

    def _ask_source(self, question: str, first: DraftTable, complete: Complete) -> None:
        """``first`` has in its other keys what they are unless ``complete`` asks."""
        _say("")
        while url := _ask(f"{question} (Enter: none)"):
            messaging = self.draft.named("messaging")
            if messaging and first.name == "broadcasters" and url == "same":
                table: DraftTable | None = first.having(url=messaging[0].keys["url"])
            else:
                chain_name = self.draft.chain_names().get(first.keys.get("chain", 0), "")
                table = self._with_address(url, f"{first.name} {chain_name}", lambda url: first.having(url=url))
            table = table and complete(table)
            if table is not None and not _complain(self.draft.adding(table)) and self._keeps_source(table):
                self.draft = self.draft.adding(table)
                return

    def _ask_indexer(self, service: str, chain_id: int, question: str) -> None:
        keys = {"chain": chain_id, "kind": kinds_for(SERVICES[service])[0].name, "url": "", "confirmations": 0}
        self._ask_source(question, DraftTable(service, keys), self._complete_indexer)

    def _complete_indexer(self, table: DraftTable) -> DraftTable | None:
        found = self._recognise_kind(table) if self._is_probing else None
        chosen = self._ask_kind(table) if found is None else table.having(kind=found)
        if chosen is None:
            return None
        behind = parse_number(_ask("Blocks that it stays behind the head on purpose", str(CONFIRMATIONS)))
        return chosen.having(confirmations=behind)

    def _recognise_kind(self, table: DraftTable) -> str | None:
        tried = try_kinds(self.draft, table)
        for kind, row in tried.items():
            if fits(row):
                _say_found(f"recognised: {kind}, {row.found}", row.took_ms)
                return kind
        causes = {kind: row.cause for kind, row in tried.items()}
        if len(set(causes.values())) == 1:
            causes = {"whatever its kind": next(iter(causes.values()))}
        for kind, cause in causes.items():
            _say_found(f"{kind}: failed: {cause}")
        _say_meanings(causes.values())
        return None

    def _ask_kind(self, table: DraftTable) -> DraftTable | None:
        names = [each.name for each in kinds_for(SERVICES[table.name])]
        while kind := _ask(f"Its kind: {', '.join(names)} (Enter: another address)"):
            load_plugins([kind])
            chosen = table.having(kind=kind, **_ask_own_keys(kind))
            if not _complain(self.draft.adding(chosen)):
                return chosen
        return None

    def _complete_ppoi(self, table: DraftTable) -> DraftTable:
        required_list = _ask("The list that it has to have", REQUIRED_LIST)
        names = self.draft.chain_names()
        chains = self._ask_which([each for each in names if each in NETWORKS] or [*names])
        own_names = {
            each: _ask(f"What the node calls {names[each]}", names[each]) for each in chains if each not in NETWORKS
        }
        return ppoi_table(table.keys["url"], chains, own_names).having(required_list=required_list)

    def _complete_broadcasters(self, table: DraftTable) -> DraftTable:
        return table.having(chains=self._ask_which(table.keys["chains"]))

    def _ask_which(self, default: list[int]) -> list[int]:
        """Some of the chains."""
        names = self.draft.chain_names()
        if len(names) == 1:
            return default
        while True:
            found = _find_chains(_ask("On which chains", ", ".join(names[each] for each in default)), names)
            if found:
                return found

    def _keeps_source(self, table: DraftTable) -> bool:
        if not self._is_probing:
            return True
        probed = probe_draft(self.draft.only_about(table))
        rows, names = rows_of(probed, table), self.draft.chain_names()
        for each in rows:
            where = "" if each.row.check.chain_id is None else f"{names[each.row.check.chain_id]}: "
            _say_found(f"{where}{each.row.status}: {explain_row(each)}", each.took_ms)
        return not any(map(_is_in_doubt, rows)) or _keeps_anyway(*(each.cause for each in rows))

    # Store and alerts

    def _ask_store(self) -> None:
        _say("\nStore: sqlite: and a file, or postgresql:// and a database.")
        while True:
            store = self._with_address(
                _ask("Store", DEFAULT_STORE), "store", lambda url: DraftTable("store", {"url": url})
            )
            if store is not None and kind_of(self._store_url(store)).name_database is not None:
                store = self._ask_read_url(store)
            if store is not None and (not self._is_probing or self._keeps_store(store)):
                self.draft = self.draft.adding(store)
                return

    def _ask_read_url(self, store: DraftTable) -> DraftTable:
        while url := _ask("Its address for servers, with a role that can only read (Enter: the same)"):
            with_both = self._with_address(url, "store read", lambda url: store.having(read_url=url))
            if with_both is not None:
                return with_both
        return store

    def _store_url(self, store: DraftTable) -> str:
        return self.draft.adding(store).settings().store.url

    def _keeps_store(self, store: DraftTable) -> bool:
        url, folder = self._store_url(store), self.draft.path.parent
        try:
            with Console(stderr=True).status("asking"):
                reach_store(url, folder)
        except StoreError as error:
            _say_found(f"failed: {error}")
            return _keeps_anyway()
        missing = [
            str(Path(each).parent) for each in kind_of(url).list_files(url, folder) if not Path(each).parent.is_dir()
        ]
        _say_found(f"there is no folder {missing[0]}; make it before you run this" if missing else "can be used")
        return True

    def _ask_alerts(self) -> None:
        _say("\nAlerts: an address of Apprise, such as mailto://user:password@example.org; docs/alerts.md has more.")
        targets: dict[str, str] = {}
        while address := _ask("Address (Enter: no more)" if targets else "Address (Enter: none)"):
            name = name_target(address, targets)
            if not _complain(self.draft.adding(*alert_tables({**targets, name: address}))):
                begin = address.find("://") + 3
                targets[name] = self._offer_variable(address, slice(begin, len(address)), f"alerts {name}")
        if targets:
            self.draft = self.draft.adding(*alert_tables(targets))

    # Addresses

    def _with_address(self, url: str, label: str, table_of: Callable[[str], DraftTable]) -> DraftTable | None:
        """The table with this address, if it is right; what is secret in it may have become a variable."""
        if _complain(self.draft.adding(table_of(url))):
            return None
        return table_of(self._offer_variable(url, find_secret(url), label))

    def _offer_variable(self, address: str, where: slice | None, label: str) -> str:
        if where is None or "${" in address or not can_be_written(address[where]):
            return address
        name = self.draft.name_variable(label)
        if not click.confirm(f"  This may hold a secret. Keep that out of the file, in ${{{name}}}?", default=True):
            return address
        self.draft = replace(self.draft, secrets={**self.draft.secrets, name: address[where]})
        return f"{address[: where.start]}${{{name}}}{address[where.stop :]}"


def _find_chains(text: str, among: Iterable[int] | None = None) -> list[int] | None:
    """The ids of chains that were named; None if one of them is none, which is said."""
    found = []
    for name in filter(None, map(str.strip, text.split(","))):
        chain_id = parse_chain(name)
        if chain_id is None or (among is not None and chain_id not in among):
            near = get_close_matches(name.title(), [each.name for each in KNOWN_CHAINS.values()], n=1)
            hint = f"did you mean {near[0]}?" if near and among is None else "give its id"
            _say_found(
                f"{name}: "
                + (f"no chain of this name is known; {hint}" if among is None else "is not among your chains")
            )
            return None
        found.append(chain_id)
    return list(dict.fromkeys(found))


def _ask_own_keys(kind: str) -> dict[str, str]:
    """What a kind needs beside the address."""
    comments = read_sections()["indexer"].comments
    answers = {key: _ask(f"{key}: {comments.get(key, 'a key of this kind')} (Enter: none)") for key in own_keys(kind)}
    return {key: answer for key, answer in answers.items() if answer}


def _add_endpoint(chain: DraftTable) -> Callable[[str], DraftTable]:
    return lambda url: chain.having(rpc=[*chain.keys["rpc"], url])


def _is_in_doubt(probed: ProbedRow) -> bool:
    """Whether nothing is known of the source, for a reason of its own."""
    return probed.row.status == "unknown" and code_of(probed.cause or "") != "no_head"


def _complain(draft: Draft) -> bool:
    problems = draft.problems()
    for problem in problems:
        _say_found(problem)
    return bool(problems)


def _keeps_anyway(*causes: str | None) -> bool:
    _say_meanings(causes)
    return click.confirm("  Keep it anyway?", default=False)


def _say_meanings(causes: Iterable[str | None]) -> None:
    for meaning in explain_causes(causes):
        _say_found(meaning)


def _say_found(text: str, took_ms: int | None = None) -> None:
    _say(f"  {text}" + ("" if took_ms is None else f" ({took_ms} ms)"))


def _say(text: str) -> None:
    click.echo(text)


def _ask(question: str, default: str = "") -> str:
    answer: str = click.prompt(question, default=default, show_default=default != "")
    return answer.strip()
