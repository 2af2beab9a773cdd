"""An indexer's own list: its transactions in a range of blocks, which are compared with the chain's logs (S17), and all
its entries in the order of their ids, whose running hash is checked (S20)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Final, Generic, TypeVar

from msgspec import Meta

from lookout.base.problem import Problem
from lookout.base.setting_types import NOT_EMPTY, SECRET, Natural, Positive, Table, UrlOrNone, ValueRule
from lookout.core.model import Listed, ListEntry
from lookout.protocols.answers import (
    decode,
    entries,
    graphql_answer,
    hexadecimal,
    member,
    number,
    open_value,
    query,
    value_at,
)
from lookout.protocols.client.failure import ProbeFailed, not_understood
from lookout.protocols.client.request import AccessTable, KindTable, Request
from lookout.protocols.evm import HASH_BYTES

ContractAddress = Annotated[str, Meta(pattern=r"\A0x[0-9a-fA-F]{40}\Z", description="0x and 40 hexadecimal digits")]
Topic = Annotated[str, Meta(pattern=r"\A0x[0-9a-fA-F]{64}\Z", description="0x and 64 hexadecimal digits")]

_ENDS: Final = ("from", "to")
_EVERY_ENTRY: Final = "*"


def _check_pointer(pointer: str) -> Iterator[Problem]:
    if not pointer.startswith("/") or _EVERY_ENTRY not in pointer.split("/"):
        what = "has to be a JSON Pointer with * in the place of a list's entries"
        yield Problem("", f'{what}, such as "/transactions/*/hash"')


class CompleteTable(Table, frozen=True, kw_only=True):
    """``[indexer.complete]``: which logs are compared, and where the indexer lists the transactions."""

    contracts: Annotated[tuple[ContractAddress, ...], Meta(min_length=1)]
    """Whose logs are compared.
    Example: ["0x0000000000000000000000000000000000000000"]"""
    events: Annotated[tuple[Topic, ...], Meta(min_length=1)]
    """The first topics of these logs: every event whose transactions are in the list, and no other.
    Example: ["0x0000000000000000000000000000000000000000000000000000000000000000"]"""
    first_block: Natural
    """The first block that is compared.
    Example: 14737691"""
    query: Annotated[str, SECRET] = ""
    """The GraphQL query for the list. It declares and uses `$from` and `$to`, the first and the last block; they are
    numbers if declared as `Int`, text otherwise.
    Example: "query($from: Int!, $to: Int!) { transactions(where: {blockNumber_gte: $from, blockNumber_lte: $to},
    limit: 1000) { transactionHash } }"
    Allowed: text; every kind but `"json"` needs it"""
    pointer: Annotated[str, NOT_EMPTY, ValueRule(_check_pointer)]
    """Where the hashes are, in the answer's `data` (of `"json"`, in the document).
    Example: "/transactions/*/transactionHash"
    Allowed: JSON Pointer with `*`"""
    limit: Annotated[int, Meta(ge=2, le=1_000_000)] = 1000
    """How many entries the query asks for; a list of so many was cut, so a smaller range is asked."""
    endpoints: Positive = 2
    """How many of the chain's endpoints have to give the same logs."""
    requests_per_minute: Annotated[int, Meta(ge=1, le=600)] = 5
    """Requests to the chain's endpoints, shared by the chain's lists."""
    each: bool = False
    """An entry for each matching log, not one per transaction."""
    url: Annotated[UrlOrNone, NOT_EMPTY] = ""
    """Where the list is asked, if not at the indexer's own address. Of `"ponder"`, `""` is its `/graphql`. `"json"`
    needs it, with `{from}` and `{to}`; so does `"subgraph"` with a `deployment`."""

    def warnings(self) -> Iterator[Problem]:
        if self.query and not re.search(rf"\b{self.limit}\b", self.query):
            why = "so an indexer that gives fewer unless it is asked for more would seem to lack the others"
            yield Problem("query", f"does not ask for {self.limit} entries, which is the limit, {why}")

    def check_query(self) -> Iterator[Problem]:
        """Check the keys of a list that is asked by GraphQL."""
        if not self.query:
            yield Problem("query", "missing; a GraphQL query for the transactions in a range of blocks")
        elif not all(_type_of(end, self.query) and len(_uses(end, self.query)) > 1 for end in _ENDS):
            yield Problem("query", "has to declare $from and $to and use both: query($from: Int!, $to: Int!) { … }")

    def check_no_query(self) -> Iterator[Problem]:
        """Check the keys of a list whose address names the range."""
        if self.query:
            yield Problem("query", 'is for GraphQL; for kind "json" the range is in url')

    def check_address(self) -> Iterator[Problem]:
        if not all(self.url.count(f"{{{end}}}") == 1 for end in _ENDS):
            yield Problem("url", 'for kind "json" has to be an address with {from} and {to} in it, each once')


_LINKS_QUERY: Final = """\
query($id: String!) { transactions(orderBy: id_ASC, limit: 1000, where: {id_gte: $id}) {
  id blockNumber transactionHash nullifiers verificationHash } }"""
_ID: Final = re.compile("[0-9A-Za-z_.:-]{1,256}")
_HEX: Final = re.compile("0x[0-9a-fA-F]{1,64}")


def _check_entry_pointer(pointer: str) -> Iterator[Problem]:
    if pointer and not pointer.startswith("/"):
        yield Problem("", 'has to be a JSON Pointer, such as "/id"')


PointerOrNone = Annotated[str, ValueRule(_check_entry_pointer)]


class LinksTable(Table, frozen=True, kw_only=True):
    """``[indexer.links]``: how the indexer lists its entries, if it is not a squid of RAILGUN."""

    query: Annotated[str, SECRET] = ""
    """The GraphQL query for the entries in the order of their ids, from `$id` on, at most 1,000. It declares and uses
    `$id`, which is `""` for the first."""
    entries: PointerOrNone = ""
    """Where the entries are, in the answer's `data`: `"/transactions"`."""
    id: PointerOrNone = ""
    """Where an entry's id is: `"/id"`."""
    block: PointerOrNone = ""
    """Where an entry's block is."""
    value: PointerOrNone = ""
    """Where the 32 bytes are that the hash is made of."""
    hash: PointerOrNone = ""
    """Where the Keccak-256 of the previous entry's `hash` and this entry's `value` is."""

    def check_query(self, *, is_known: bool) -> Iterator[Problem]:
        """``is_known`` says that the kind of the indexer needs none of the keys."""
        missing = [key for key in self.__struct_fields__ if not getattr(self, key)]
        if missing and (not is_known or len(missing) < len(self.__struct_fields__)):
            unless = "; a squid of RAILGUN needs none of these keys" if is_known else ""
            yield from (Problem(key, f"missing{unless}") for key in missing)
        elif self.query and (not _type_of("id", self.query) or len(_uses("id", self.query)) < 2):
            yield Problem("query", "has to declare $id and use it: query($id: String!) { … }")


SQUID_LINKS: Final = LinksTable(
    query=_LINKS_QUERY,
    entries="/transactions",
    id="/id",
    block="/blockNumber",
    value="/nullifiers/0",
    hash="/verificationHash",
)
_SQUID_TRANSACTION: Final = "/transactionHash"


class ListTable(KindTable, frozen=True, kw_only=True):
    """The table of an indexer that may list its transactions: by GraphQL, unless its protocol differs."""

    complete: CompleteTable | None = None
    links: LinksTable | None = None

    def check(self) -> Iterator[Problem]:
        if self.complete is not None:
            yield from (problem.below("complete") for problem in self.check_list(self.complete))
        if self.links is not None:
            yield from (problem.below("links") for problem in self.check_links(self.links))

    def check_list(self, complete: CompleteTable) -> Iterable[Problem]:
        return complete.check_query()

    def check_links(self, links: LinksTable) -> Iterable[Problem]:
        return links.check_query(is_known=self.has_known_links())

    def has_known_links(self) -> bool:
        """Whether RAILGUN has indexers of this kind."""
        return False

    def hashed_list(self) -> "HashedList | None":
        links = self.links
        if links is None:
            return None
        return HashedList(links if links.query else SQUID_LINKS, self.list_url(), self, self.kind)

    def list_url(self) -> str:
        """The list's address, unless ``complete`` names another one."""
        return self.url

    def transaction_list(self) -> "TransactionList | None":
        complete = self.complete
        return None if complete is None else TransactionList(complete, complete.url or self.list_url(), self, self.kind)


_Keys = TypeVar("_Keys", CompleteTable, LinksTable)


# A dataclass and not a Struct: its repr leaves the secrets out.
@dataclass(frozen=True)
class ListAt(Generic[_Keys]):
    """Where and how an indexer is asked for its list."""

    table: _Keys = field(repr=False)
    url: str = field(repr=False)
    access: AccessTable = field(repr=False)
    kind: str = ""


TransactionList = ListAt[CompleteTable]
HashedList = ListAt[LinksTable]


def entries_request(of: HashedList, from_id: str) -> Request:
    """The request for the entries from this id on; "" is before all entries."""
    return Request("POST", of.url, of.access, query(of.table.query, id=from_id))


def parse_entries(body: bytes, of: HashedList) -> list[ListEntry]:
    """ProbeFailed unless there is a list of entries that have an id and a block. A hash or value that is missing or
    malformed is None."""
    table = of.table
    return [
        ListEntry(
            _read_id(value_at(entry, table.id)),
            number(value_at(entry, table.block), "an entry's block"),
            _read_bytes(entry, table.value),
            _read_bytes(entry, table.hash),
            (_read_bytes(entry, _SQUID_TRANSACTION) or "") if table is SQUID_LINKS else "",
        )
        for entry in map(open_value, entries(value_at(graphql_answer(body), table.entries), "no list of entries"))
    ]


def _read_id(value: object) -> str:
    """The id, which cannot be cut: it is asked for, and named to the operator."""
    read = open_value(value)
    if type(read) in (int, str) and _ID.fullmatch(str(read)):
        return str(read)
    raise not_understood("an entry's id")


def _read_bytes(entry: object, pointer: str) -> str | None:
    """32 bytes, which may lack zeros at their beginning; None for any other value."""
    try:
        read = open_value(value_at(entry, pointer))
    except ProbeFailed:
        return None
    is_right = type(read) is str and _HEX.fullmatch(read) is not None
    return f"0x{read[2:].lower().rjust(2 * HASH_BYTES, '0')}" if is_right else None


def list_request(of: TransactionList, first: int, last: int) -> Request:
    """The request for the transactions from the first to the last of these blocks, both included."""
    graphql = of.table.query
    if not graphql:
        return Request("GET", of.url.replace("{from}", str(first)).replace("{to}", str(last)), of.access)
    # Block numbers are Int in most indexers; in some BigInt, which is written as text.
    ends = {
        end: block if _type_of(end, graphql) == "Int" else str(block)
        for end, block in zip(_ENDS, (first, last), strict=True)
    }
    return Request("POST", of.url, of.access, query(graphql, **ends))


def parse_list(body: bytes, of: TransactionList) -> Listed:
    """ProbeFailed unless the pointer leads to a list of transactions' hashes alone."""
    values, longest = [graphql_answer(body) if of.table.query else decode(body)], 0
    for token in of.table.pointer.split("/")[1:]:
        if token == _EVERY_ENTRY:
            lists = [entries(value, "no list of transactions") for value in values]
            longest = max([longest, *map(len, lists)])
            values = [entry for listed in lists for entry in listed]
        else:
            values = [member(value, token, of.table.pointer) for value in values]
    return Listed(Counter(hexadecimal(value, HASH_BYTES, "a transaction's hash") for value in values), longest)


def _type_of(variable: str, graphql: str) -> str | None:
    """The type that a query declares for a variable; None if undeclared."""
    declared = re.search(rf"\${variable}\s*:\s*([A-Za-z_]\w*)", graphql)
    return declared and declared[1]


def _uses(variable: str, graphql: str) -> list[str]:
    return re.findall(rf"\${variable}\b", graphql)
