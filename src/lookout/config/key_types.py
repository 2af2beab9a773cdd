"""What the type of a key says of its values: what is allowed, in words, and which rules hold."""

import typing
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from lookout.base.problem import Problem
from lookout.base.setting_types import SECRET, OneOf, Table, ValueRule

Note = TypeVar("Note")


def is_table(key_type: Any) -> bool:
    return isinstance(key_type, type) and issubclass(key_type, Table)


def is_list_of_tables(key_type: Any) -> bool:
    return typing.get_origin(key_type) is tuple and is_table(typing.get_args(key_type)[0])


def is_secret(key_type: Any) -> bool:
    """Whether a value of this type, or one in it, may be a secret."""
    return key_type is SECRET or any(map(is_secret, typing.get_args(key_type)))


def find_broken_rules(key_type: Any, value: Any) -> Iterator[Problem]:
    """What is wrong with a value, and with the values in it."""
    key_type, _, rules = split_annotated(key_type)
    for rule in rules:
        yield from rule.problems(value)
    inner = typing.get_args(key_type)
    if typing.get_origin(key_type) is tuple:
        for number, entry in enumerate(value):
            yield from (problem.below(f"[{number}]") for problem in find_broken_rules(inner[0], entry))
    elif typing.get_origin(key_type) is dict:
        for name, entry in value.items():
            yield from (problem.below(name) for problem in find_broken_rules(inner[1], entry))


def check_choices(key_type: Any, value: Any) -> None:
    """ValidationError for a text that is not among those that are declared."""
    if (choices := _find_choices(key_type)) is not None and value not in choices:
        raise msgspec.ValidationError
    if typing.get_origin(key_type) is tuple:
        for entry in value:
            check_choices(typing.get_args(key_type)[0], entry)


def _find_choices(key_type: Any) -> tuple[str, ...] | None:
    if typing.get_origin(key_type) is Literal:
        return typing.get_args(key_type)
    declared = find_note(key_type, OneOf)
    return None if declared is None else tuple(declared.choices())


def describe_allowed(key_type: Any) -> str:
    """What a value may be, in words."""
    if (texts := _find_choices(key_type)) is not None:
        return f"one of {', '.join(texts)}"
    key_type, meta, _ = split_annotated(key_type)
    if meta.description:
        return meta.description
    choices = typing.get_args(key_type)
    if typing.get_origin(key_type) is tuple:
        return f"a list{' that is not empty' if meta.min_length else ''}, each of it {describe_allowed(choices[0])}"
    if typing.get_origin(key_type) is dict:
        return f"a table, each of its values {describe_allowed(choices[1])}"
    if key_type is bool:
        return "true or false"
    if key_type is str:
        return f"a text{' that is not empty' if meta.min_length else ''}"
    return f"{'a whole number' if key_type is int else 'a number'} from {meta.ge} to {meta.le}"


def split_annotated(key_type: Any) -> tuple[Any, Meta, tuple[ValueRule, ...]]:
    """A type without what is annotated to it, the limits, and the rules."""
    if typing.get_origin(key_type) is not Annotated:
        return key_type, Meta(), ()
    rules = tuple(note for note in key_type.__metadata__ if isinstance(note, ValueRule))
    return key_type.__origin__, find_note(key_type, Meta) or Meta(), rules


def find_note(key_type: Any, of: type[Note]) -> Note | None:
    """The first note of this type that is annotated to a type."""
    return next((note for note in getattr(key_type, "__metadata__", ()) if isinstance(note, of)), None)
