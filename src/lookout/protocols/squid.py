"""Squid (SQD): the height up to which its database is filled."""

from typing import Final

from lookout.core.model import Blocks, Nothing
from lookout.protocols.answers import count, graphql_answer, open_value, query, table
from lookout.protocols.client.request import Request
from lookout.protocols.lists import ListTable
from lookout.protocols.source import Protocol

# The height alone: older servers refuse a query that names the other fields.
QUERY: Final = query("{ squidStatus { height } }")
_BEFORE_THE_FIRST_BATCH: Final = -1


def parse_status(body: bytes) -> Blocks | Nothing:
    """A null status means that the processor never ran, which is no answer; one that has just begun has nothing yet."""
    status = table(graphql_answer(body).get("squidStatus"), "no squidStatus")
    height = open_value(status.get("height"))
    if type(height) is int and height == _BEFORE_THE_FIRST_BATCH:
        return Nothing()
    return Blocks(count(height, "the height"))


SQUID: Final = Protocol(
    "squid",
    Blocks,
    ListTable,
    request=lambda settings: Request("POST", settings.url, settings, QUERY),
    parse=lambda body, _: parse_status(body),
)
