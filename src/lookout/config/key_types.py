"""What the type of a key says of its values: what is allowed, in words, and which rules hold."""

import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from lookout.base.problem import Problem
from lookout.base.setting_types import OneOf, Rule, Table

Note = TypeVar("Note")


def is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Table)


def is_list_of_tables(kind: Any) -> bool:
    return typing.get_origin(kind) is tuple and is_table(typing.get_args(kind)[0])


def broken_rules(kind: Any, value: Any) -> Iterator[Problem]:
    """What is wrong with a value, and with the values in it."""
    kind, _, rules = split_annotated(kind)
    for rule in rules:
        yield from rule.problems(value)
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        for number, entry in enumerate(value):
            yield from (problem.below(f"[{number}]") for problem in broken_rules(inner[0], entry))
    elif typing.get_origin(kind) is dict:
        for name, entry in value.items():
            yield from (problem.below(name) for problem in broken_rules(inner[1], entry))


def check_choices(kind: Any, value: Any) -> None:
    """ValidationError for a text that is not among those that are declared."""
    if (choices := _choices(kind)) is not None and value not in choices:
        raise msgspec.ValidationError
    if typing.get_origin(kind) is tuple:
        for entry in value:
            check_choices(typing.get_args(kind)[0], entry)


def _choices(kind: Any) -> tuple[str, ...] | None:
    if typing.get_origin(kind) is Literal:
        return typing.get_args(kind)
    declared = find_note(kind, OneOf)
    return None if declared is None else tuple(declared.choices())


def describe_allowed(kind: Any) -> str:
    """What a value may be, in words."""
    if (texts := _choices(kind)) is not None:
        return f"one of {', '.join(texts)}"
    kind, meta, _ = split_annotated(kind)
    if meta.description:
        return meta.description
    choices = typing.get_args(kind)
    if typing.get_origin(kind) is tuple:
        return f"a list{' that is not empty' if meta.min_length else ''}, each of it {describe_allowed(choices[0])}"
    if typing.get_origin(kind) is dict:
        return f"a table, each of its values {describe_allowed(choices[1])}"
    if kind is bool:
        return "true or false"
    if kind is str:
        return f"a text{' that is not empty' if meta.min_length else ''}"
    return f"{'a whole number' if kind is int else 'a number'} from {meta.ge} to {meta.le}"


def split_annotated(kind: Any) -> tuple[Any, Meta, tuple[Rule, ...]]:
    """A type without what is annotated to it, the limits, and the rules."""
    if typing.get_origin(kind) is not Annotated:
        return kind, Meta(), ()
    rules = tuple(note for note in kind.__metadata__ if isinstance(note, Rule))
    return kind.__origin__, find_note(kind, Meta) or Meta(), rules


def find_note(kind: Any, of: type[Note]) -> Note | None:
    """The first note of this type that is annotated to a type."""
    return next((note for note in getattr(kind, "__metadata__", ()) if isinstance(note, of)), None)
