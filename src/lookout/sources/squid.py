"""Squid (SQD): the height up to which its database is filled."""

from typing import Final

from lookout.core.model import Blocks
from lookout.sources.answers import count, graphql_answer, query, table

# The height alone: older servers refuse a query that names the other fields.
QUERY: Final = query("{ squidStatus { height } }")


def parse_status(body: bytes) -> Blocks:
    """A null status means that the processor never ran, which is no answer."""
    status = table(graphql_answer(body).get("squidStatus"), "no squidStatus")
    return Blocks(count(status.get("height"), "the height"))
