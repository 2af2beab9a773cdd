"""As much of GraphQL as the indexers' statuses need: a query's fields, and an answer holding just those."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from lookout.demo.sim.http.reply import UpstreamReply, json_reply

_ARGUMENTS: Final = re.compile(r"\([^()]*\)|#[^\n]*")
_TOKEN: Final = re.compile(r"[{}]|[^\s,{}]+")
_STRING: Final = re.compile(r'"([^"\\]*)"')

Fields = dict[str, "Fields"]


class QueryError(ValueError):
    """A query that does not parse, or asks for what is not there."""


def graphql_reply(
    body: bytes, answer: Callable[[Sequence[str]], dict[str, object]], nulled: str | None = None
) -> UpstreamReply:
    """Answer a query from the whole document, which is given every string that the query or its variables name; with
    ``nulled``, that field is null and errors say so."""
    try:
        query, variables = _parse_request(body)
        _, _, selection = _ARGUMENTS.sub("", query).partition("{")
        fields = _parse_fields(iter(_TOKEN.findall(selection)))
        strings = _STRING.findall(query) + _STRING.findall(json.dumps(list(variables.values())))
        chosen = _choose(answer(strings), fields, "Query")
    except QueryError as problem:
        error = {"message": str(problem), "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"}}
        return json_reply({"errors": [error]}, 400)
    if nulled is not None:
        error = {"message": "Cannot return null for non-nullable field.", "path": [nulled]}
        return json_reply({"errors": [error], "data": {nulled: None}})
    return json_reply({"data": chosen})


def _parse_request(body: bytes) -> tuple[str, dict[str, object]]:
    try:
        document = json.loads(body)
    except ValueError as problem:
        raise QueryError(f"the body is not JSON: {problem}") from problem
    match document:
        case {"query": str(query)}:
            return query, document.get("variables") or {}
        case _:
            raise QueryError("the body has no query")


def _parse_fields(tokens: Iterator[str]) -> Fields:
    """The fields up to the closing brace, each with what is asked for beneath it."""
    fields: Fields = {}
    name = ""
    for text in tokens:
        if text == "}" and fields:
            return fields
        if text == "{" and name:
            fields[name] = _parse_fields(tokens)
        elif text.isidentifier():
            name = text
            fields[name] = {}
        else:
            raise QueryError(f"Syntax Error: Unexpected {text}")
    raise QueryError("Syntax Error: Unexpected <EOF>")


def _choose(document: object, fields: Fields, of: str) -> object:
    if isinstance(document, list):
        return [_choose(each, fields, of) for each in document]
    if not isinstance(document, dict):
        if fields and document is not None:
            raise QueryError(f'Field "{of}" must not have a selection since it has no subfields.')
        return document
    if not fields:
        raise QueryError(f'Field "{of}" must have a selection of subfields.')
    for name in fields:
        if name not in document:
            raise QueryError(f'Cannot query field "{name}" on type "{of}".')
    return {name: _choose(document[name], beneath, name) for name, beneath in fields.items()}
