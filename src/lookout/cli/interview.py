"""The questions of ``lookout init`` on a terminal: each answer is checked, and each source asked, as it comes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from msgspec.structs import replace
from rich.console import Console

from lookout.app.monitor import reach_store
from lookout.base.known_chains import KNOWN_CHAINS
from lookout.cli.draft import (
    CONFIRMATIONS,
    DEFAULT_STORE,
    REQUIRED_LIST,
    Draft,
    DraftTable,
    build_alert_tables,
    build_ppoi_table,
    list_own_keys,
    name_chain,
    name_target,
    parse_number,
)
from lookout.cli.probe import explain_row
from lookout.cli.prompts import ask, complain, find_chains, keeps_anyway, say, say_found, say_next_steps
from lookout.cli.template import read_sections
from lookout.cli.trial import fits, probe_draft, select_rows, try_kinds
from lookout.cli.variables import can_be_written, find_secret
from lookout.core.causes import code_of
from lookout.core.services import SERVICES
from lookout.monitor.probe import ProbedRow
from lookout.protocols.ppoi import NETWORKS
from lookout.protocols.registry import kinds_for, load_plugins
from lookout.store.kinds import ADDRESS_FORM, kind_of
from lookout.store.protocol import StoreError

_WAKU: Final = "the REST address of your waku node"

Complete = Callable[[DraftTable], DraftTable | None]
"""Asks for what a table with the right address still needs; None: ask for another address."""


class Interview:
    """The conversation: a draft that grows with each answer."""

    def __init__(self, draft: Draft, *, is_probing: bool) -> None:
        self.draft = draft
        self._is_probing = is_probing

    def run(self) -> Draft:
        """Ask for everything; the draft of the answers."""
        say("Enter leaves out what you do not watch; Ctrl-C ends this, and nothing is written.")
        say("In any answer, ${NAME} stands for the environment variable NAME.")
        self._ask_chains()
        names = self.draft.chain_names()
        for chain_id, name in names.items():
            self._ask_indexer("indexer", chain_id, f"Your own indexer of {name}: its address")
            self._ask_indexer("hosted-indexer", chain_id, f"The indexer of {name} that others run: its address")
        if names:
            ppoi = build_ppoi_table("", [*names], names)
            self._ask_source("The ppoi node (private proof of innocence): its address", ppoi, self._complete_ppoi)
        self._ask_source(f"Messaging: {_WAKU}", DraftTable("messaging", {"url": ""}), lambda table: table)
        if names:
            same = ', or "same"' if self.draft.find("messaging") else ""
            broadcasters = DraftTable("broadcasters", {"url": "", "chains": [*names]})
            self._ask_source(f"Broadcasters: {_WAKU}{same}", broadcasters, self._complete_broadcasters)
        self._ask_store()
        if self.draft.is_watching():
            self._ask_alerts()
        return self.draft

    # Chains

    def _ask_chains(self) -> None:
        some = ", ".join(known.name for known in [*KNOWN_CHAINS.values()][:6])
        say(f"\nChains: by name or id, with commas between them, such as {some}.")
        found: list[int] | None = None
        while found is None:
            found = find_chains(ask("Chains"))
        for chain_id in found:
            self._ask_chain(chain_id)

    def _ask_chain(self, chain_id: int) -> None:
        chain = DraftTable("chains", {"id": chain_id, **self._ask_facts(chain_id), "rpc": []})
        name = name_chain(chain)
        say(f"\n{name}: its RPC endpoints, one after another, three or more of different providers.")
        while url := ask(
            f"Endpoint {len(chain.keys['rpc']) + 1} (Enter: {'no more' if chain.keys['rpc'] else 'none'})"
        ):
            before = self.draft
            longer = self._with_address(url, f"{name} rpc {len(chain.keys['rpc']) + 1}", _add_endpoint(chain))
            if longer is not None and self._keeps_endpoint(longer):
                chain = longer
            else:
                self.draft = before  # without the secret
        if chain.keys["rpc"]:
            self.draft = self.draft.add(chain)
        else:
            say(f"{name} is left out: without an endpoint there is no head.")

    def _ask_facts(self, chain_id: int) -> dict[str, Any]:
        """What has to be said of a chain that is not known."""
        if chain_id in KNOWN_CHAINS:
            return {}
        say(f"\nLookout knows nothing about chain {chain_id}.")
        while True:
            facts = {"name": ask("Its name"), "block_time_s": parse_number(ask("Seconds between its blocks"))}
            if click.confirm("Is it a test network?", default=False):
                facts["test_network"] = True
            chain = DraftTable("chains", {"id": chain_id, **facts, "rpc": ["http://localhost"]})
            if not complain(self.draft.add(chain)):
                return facts

    def _keeps_endpoint(self, chain: DraftTable) -> bool:
        """Ask the endpoints of a chain, and say how the newest compares."""
        if not self._is_probing:
            return True
        probed = probe_draft(self.draft.narrow_to(chain))
        heads = probed.chains[0]
        newest = heads.endpoints[-1]
        is_first = len(heads.endpoints) == 1
        if newest.cause is not None:
            say_found(newest.found, newest.took_ms)
            return keeps_anyway(newest.cause)
        say_found(f"chain {chain.keys['id']}, {newest.block if is_first else newest.found}", newest.took_ms)
        if not is_first and not heads.has_head:
            say_found(heads.found)
        return newest.is_fine or not heads.has_head or keeps_anyway()

    # Services

    def _ask_source(self, question: str, first: DraftTable, complete: Complete) -> None:
        """``first`` has in its other keys what they are unless ``complete`` asks."""
        say("")
        while url := ask(f"{question} (Enter: none)"):
            before, messaging = self.draft, self.draft.find("messaging")
            if messaging and first.name == "broadcasters" and url == "same":
                table: DraftTable | None = first.with_keys(url=messaging[0].keys["url"])
            else:
                chain_name = self.draft.chain_names().get(first.keys.get("chain", 0), "")
                table = self._with_address(url, f"{first.name} {chain_name}", lambda url: first.with_keys(url=url))
            table = table and complete(table)
            if table is not None and not complain(self.draft.add(table)) and self._keeps_source(table):
                self.draft = self.draft.add(table)
                return
            self.draft = before

    def _ask_indexer(self, service: str, chain_id: int, question: str) -> None:
        keys = {"chain": chain_id, "kind": kinds_for(SERVICES[service])[0].name, "url": "", "confirmations": 0}
        self._ask_source(question, DraftTable(service, keys), self._complete_indexer)

    def _complete_indexer(self, table: DraftTable) -> DraftTable | None:
        found = self._recognise_kind(table) if self._is_probing else None
        chosen = self._ask_kind(table) if found is None else table.with_keys(kind=found)
        if chosen is None:
            return None
        behind = parse_number(ask("Blocks that it stays behind the head on purpose", str(CONFIRMATIONS)))
        return chosen.with_keys(confirmations=behind)

    def _recognise_kind(self, table: DraftTable) -> str | None:
        tried, not_tried = try_kinds(self.draft, table)
        for kind, row in tried.items():
            if fits(row):
                say_found(f"recognised: {kind}, {row.found}", row.took_ms)
                return kind
        causes = {kind: row.cause for kind, row in tried.items()}
        if len(set(causes.values())) == 1:
            say_found(f"whatever its kind: {next(iter(tried.values())).found}")
        else:
            failed = {kind: row.found for kind, row in tried.items()}
            for kind, why in {**failed, **not_tried}.items():
                say_found(f"{kind}: {why}")
        say_next_steps(causes.values())
        return None

    def _ask_kind(self, table: DraftTable) -> DraftTable | None:
        service = SERVICES[table.name]
        names = ", ".join(each.name for each in kinds_for(service))
        while kind := ask(f"Its kind: {names} (Enter: another address)"):
            load_plugins([kind])
            is_known = kind in [each.name for each in kinds_for(service)]
            chosen = table.with_keys(kind=kind, **(_ask_own_keys(kind) if is_known else {}))
            if not complain(self.draft.add(chosen)):
                return chosen
        return None

    def _complete_ppoi(self, table: DraftTable) -> DraftTable:
        required_list = ask("The list that it has to have", REQUIRED_LIST)
        names = self.draft.chain_names()
        chains = self._ask_which([each for each in names if each in NETWORKS] or [*names])
        own_names = {
            each: ask(f"What the node calls {names[each]}", names[each]) for each in chains if each not in NETWORKS
        }
        return build_ppoi_table(table.keys["url"], chains, own_names).with_keys(required_list=required_list)

    def _complete_broadcasters(self, table: DraftTable) -> DraftTable:
        return table.with_keys(chains=self._ask_which(table.keys["chains"]))

    def _ask_which(self, default: list[int]) -> list[int]:
        """Some of the chains."""
        names = self.draft.chain_names()
        if len(names) == 1:
            return default
        while True:
            found = find_chains(ask("On which chains", ", ".join(names[each] for each in default)), names)
            if found:
                return found

    def _keeps_source(self, table: DraftTable) -> bool:
        if not self._is_probing:
            return True
        probed = probe_draft(self.draft.narrow_to(table))
        rows, names = select_rows(probed, table), self.draft.chain_names()
        for each in rows:
            where = "" if each.row.check.chain_id is None else f"{names[each.row.check.chain_id]}: "
            say_found(f"{where}{each.row.status}: {explain_row(each)}", each.took_ms)
        return not any(map(_is_in_doubt, rows)) or keeps_anyway(*(each.cause for each in rows))

    # Store and alerts

    def _ask_store(self) -> None:
        say(f"\nStore: its address has to {ADDRESS_FORM}.")
        before = self.draft
        while True:
            self.draft = before
            store = self._with_address(
                ask("Store", DEFAULT_STORE), "store", lambda url: DraftTable("store", {"url": url})
            )
            if store is not None and kind_of(self._store_url(store)).name_database is not None:
                store = self._ask_read_url(store)
            if store is not None and (not self._is_probing or self._keeps_store(store)):
                self.draft = self.draft.add(store)
                return

    def _ask_read_url(self, store: DraftTable) -> DraftTable:
        while url := ask("Its address for servers, with a role that can only read (Enter: the same)"):
            with_both = self._with_address(url, "store read", lambda url: store.with_keys(read_url=url))
            if with_both is not None:
                return with_both
        return store

    def _store_url(self, store: DraftTable) -> str:
        return self.draft.add(store).settings().store.url

    def _keeps_store(self, store: DraftTable) -> bool:
        url, folder = self._store_url(store), self.draft.path.parent
        try:
            with Console(stderr=True).status("asking"):
                reach_store(url, folder)
        except StoreError as error:
            say_found(f"failed: {error}")
            return keeps_anyway()
        missing = [
            str(Path(each).parent) for each in kind_of(url).list_files(url, folder) if not Path(each).parent.is_dir()
        ]
        say_found(f"there is no folder {missing[0]}; make it before you run this" if missing else "can be used")
        return True

    def _ask_alerts(self) -> None:
        say("\nAlerts: an address of Apprise, such as mailto://user:password@example.org; docs/alerts.md has more.")
        targets: dict[str, str] = {}
        while address := ask("Address (Enter: no more)" if targets else "Address (Enter: none)"):
            name = name_target(address, targets)
            if not complain(self.draft.add(*build_alert_tables({**targets, name: address}))):
                begin = address.find("://") + 3
                targets[name] = self._offer_variable(address, slice(begin, len(address)), f"alerts {name}")
        if targets:
            self.draft = self.draft.add(*build_alert_tables(targets))

    # Addresses

    def _with_address(self, url: str, label: str, table_of: Callable[[str], DraftTable]) -> DraftTable | None:
        """The table with this address, if it is right; what is secret in it may have become a variable."""
        if complain(self.draft.add(table_of(url))):
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


def _ask_own_keys(kind: str) -> dict[str, str]:
    """What a kind needs beside the address."""
    comments = read_sections()["indexer"].comments
    answers = {
        key: ask(f"{key}: {comments.get(key, 'a key of this kind')} (Enter: none)") for key in list_own_keys(kind)
    }
    return {key: answer for key, answer in answers.items() if answer}


def _add_endpoint(chain: DraftTable) -> Callable[[str], DraftTable]:
    return lambda url: chain.with_keys(rpc=[*chain.keys["rpc"], url])


def _is_in_doubt(probed: ProbedRow) -> bool:
    """Whether nothing is known of the source, for a reason of its own."""
    return probed.row.status == "unknown" and code_of(probed.cause or "") != "no_head"
