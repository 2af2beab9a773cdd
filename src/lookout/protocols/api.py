"""The stable names for protocols of other packages (CONTRIBUTING.md)."""

from lookout.base.problem import Problem
from lookout.base.setting_types import Line, Name, Natural, OneOf, Positive, Text, Url, must
from lookout.core.model import Blocks, Found, Indexes, Members, Nothing, Peers, Responding
from lookout.protocols.answers import (
    call,
    count,
    decimal,
    decode,
    entries,
    graphql_answer,
    open_value,
    quantity,
    query,
    result_of,
    table,
    value_at,
)
from lookout.protocols.client.failure import ProbeFailed, not_understood
from lookout.protocols.client.request import AccessTable, KindTable, Request, below
from lookout.protocols.source import Protocol

__all__ = [
    "AccessTable",
    "Blocks",
    "Found",
    "Indexes",
    "KindTable",
    "Line",
    "Members",
    "Name",
    "Natural",
    "Nothing",
    "OneOf",
    "Peers",
    "Positive",
    "ProbeFailed",
    "Problem",
    "Protocol",
    "Request",
    "Responding",
    "Text",
    "Url",
    "below",
    "call",
    "count",
    "decimal",
    "decode",
    "entries",
    "graphql_answer",
    "must",
    "not_understood",
    "open_value",
    "quantity",
    "query",
    "result_of",
    "table",
    "value_at",
]
