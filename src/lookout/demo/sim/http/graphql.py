"""As much of GraphQL as the indexers' statuses need: a query's fields, and an answer holding just those."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from lookout.demo.sim.http.reply import Reply, json_reply

_TOKEN: Final = re.compile(r"[\s,]+|#[^\n]*|(?P<arguments>\([^()]*\))|(?P<brace>[{}])|(?P<name>[A-Za-z_]\w*)")
_STRING: Final = re.compile(r'"([^"\\]*)"')
_VARIABLE: Final = re.compile(r"\$(\w+)")
_DEEPEST: Final = 16


class Field(NamedTuple):
    """A field that is asked for, its arguments as they were written, and what is asked for beneath it."""

    name: str
    arguments: str
    selection: tuple["Field", ...]


class QueryError(ValueError):
    """A query that does not parse, or asks for what is not there."""


class Request(NamedTuple):
    """What was posted: the fields, and every string that stands in their arguments, directly or by variable."""

    fields: tuple[Field, ...]
    strings: tuple[str, ...]


def graphql_reply(body: bytes, answer: Callable[[Request], dict[str, object]], nulled: str | None = None) -> Reply:
    """Answer a query from the whole document; with ``nulled``, that field is null and errors say so."""
    try:
        request = parse_request(body)
        chosen = _chosen(answer(request), request.fields, "Query")
    except QueryError as problem:
        error = {"message": str(problem), "extensions": {"code": "GRAPHQL_VALIDATION_FAILED"}}
        return json_reply({"errors": [error]}, 400)
    if nulled is not None:
        error = {"message": "Cannot return null for non-nullable field.", "path": [nulled]}
        return json_reply({"errors": [error], "data": {nulled: None}})
    return json_reply({"data": chosen})


def parse_request(body: bytes) -> Request:
    try:
        document = json.loads(body)
    except ValueError as problem:
        raise QueryError(f"the body is not JSON: {problem}") from problem
    match document:
        case {"query": str(query)}:
            variables = document.get("variables")
        case _:
            raise QueryError("the body has no query")
    if query.lstrip().startswith("query"):
        query = "{" + query.partition("{")[2]
    tokens = _tokens(query)
    if next(tokens, ("", ""))[1] != "{":
        raise QueryError("Syntax Error: Expected {")
    fields = _selection(tokens, 1)
    return Request(fields, tuple(_strings(fields, variables if isinstance(variables, dict) else {})))


def _tokens(query: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(query):
        token = _TOKEN.match(query, at)
        if token is None:
            raise QueryError(f"Syntax Error: Unexpected character {query[at]!r}")
        at = token.end()
        if token.lastgroup is not None:
            yield token.lastgroup, token.group()


def _selection(tokens: Iterator[tuple[str, str]], depth: int) -> tuple[Field, ...]:
    if depth > _DEEPEST:
        raise QueryError("the query is too deep")
    fields: list[Field] = []
    for kind, text in tokens:
        if text == "}" and fields:
            return tuple(fields)
        if kind == "name":
            fields.append(Field(text, "", ()))
        elif kind == "arguments" and fields:
            fields[-1] = fields[-1]._replace(arguments=text)
        elif text == "{" and fields:
            fields[-1] = fields[-1]._replace(selection=_selection(tokens, depth + 1))
        else:
            raise QueryError(f"Syntax Error: Unexpected {text}")
    raise QueryError("Syntax Error: Unexpected <EOF>")


def _strings(fields: Sequence[Field], variables: dict[str, object]) -> Iterator[str]:
    for field in fields:
        yield from _STRING.findall(field.arguments)
        for name in _VARIABLE.findall(field.arguments):
            given = variables.get(name)
            yield from (each for each in (given if isinstance(given, list) else [given]) if isinstance(each, str))
        yield from _strings(field.selection, variables)


def _chosen(document: object, fields: tuple[Field, ...], of: str) -> object:
    if isinstance(document, list):
        return [_chosen(each, fields, of) for each in document]
    if not isinstance(document, dict):
        if fields and document is not None:
            raise QueryError(f'Field "{of}" must not have a selection since it has no subfields.')
        return document
    if not fields:
        raise QueryError(f'Field "{of}" must have a selection of subfields.')
    for field in fields:
        if field.name not in document:
            raise QueryError(f'Cannot query field "{field.name}" on type "{of}".')
    return {field.name: _chosen(document[field.name], field.selection, field.name) for field in fields}
