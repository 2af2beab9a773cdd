"""Squid (SQD): the height up to which its database is filled, and how many entries its list has (S21)."""

from typing import Final

from lookout.core.model import Blocks, Nothing
from lookout.protocols.answers import count, graphql_answer, number, open_value, query, table
from lookout.protocols.client.request import Request
from lookout.protocols.lists import ListTable
from lookout.protocols.source import Protocol

# Only the height: older servers refuse a query for the other fields.
QUERY: Final = query("{ squidStatus { height } }")
_BEFORE_THE_FIRST_BATCH: Final = -1
_COUNT_QUERY: Final = """\
query($to: BigInt!) { transactionsConnection(orderBy: id_ASC, where: {blockNumber_lte: $to}) { totalCount } }"""


class SquidTable(ListTable, frozen=True, kw_only=True):
    def has_known_links(self) -> bool:
        return True


def parse_status(body: bytes) -> Blocks | Nothing:
    """A null status means that the processor never ran, which is a failure; a new processor has no data yet."""
    status = table(graphql_answer(body).get("squidStatus"), "no squidStatus")
    height = open_value(status.get("height"))
    if type(height) is int and height == _BEFORE_THE_FIRST_BATCH:
        return Nothing()
    return Blocks(count(height, "the height"))


def count_request(settings: SquidTable, last_block: int) -> Request:
    """The request for the number of entries up to this block."""
    return Request("POST", settings.url, settings, query(_COUNT_QUERY, to=str(last_block)))


def parse_count(body: bytes) -> int:
    connection = table(graphql_answer(body).get("transactionsConnection"), "no transactionsConnection")
    return number(connection.get("totalCount"), "the number of entries")


SQUID: Final = Protocol(
    "squid",
    Blocks,
    SquidTable,
    request=lambda settings: Request("POST", settings.url, settings, QUERY),
    parse=lambda body, _: parse_status(body),
)
