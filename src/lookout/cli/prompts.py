"""What ``lookout init`` says and asks on a terminal."""

import readline  # noqa: F401  it lets people edit what they type
from collections.abc import Iterable
from difflib import get_close_matches

import click

from lookout.base.known_chains import KNOWN_CHAINS
from lookout.cli.draft import Draft, parse_chain
from lookout.cli.probe import list_next_steps


def ask(question: str, default: str = "") -> str:
    answer: str = click.prompt(question, default=default, show_default=default != "")
    return answer.strip()


def find_chains(text: str, among: Iterable[int] | None = None) -> list[int] | None:
    """The ids of the chains that were named; None if one of them is none, or none of these, which is said."""
    found = {name: parse_chain(name) for name in filter(None, map(str.strip, text.split(",")))}
    for name, chain_id in found.items():
        if chain_id is None:
            near = get_close_matches(name.title(), [known.name for known in KNOWN_CHAINS.values()], n=1)
            hint = f"did you mean {near[0]}?" if near else "give its id"
            say_found(f"{name}: no chain of this name is known; {hint}")
            return None
        if among is not None and chain_id not in among:
            say_found(f"{name}: is not among your chains")
            return None
    return list(dict.fromkeys(chain_id for chain_id in found.values() if chain_id is not None))


def complain(draft: Draft) -> bool:
    """Say what is wrong with a draft; whether anything is."""
    problems = draft.problems()
    for problem in problems:
        say_found(problem)
    return bool(problems)


def keeps_anyway(*causes: str | None) -> bool:
    """Ask what to do with a source that failed for these causes."""
    say_next_steps(causes)
    return click.confirm("  Keep it anyway?", default=False)


def say_next_steps(causes: Iterable[str | None]) -> None:
    for step in list_next_steps(causes):
        say_found(step)


def say_found(text: str, took_ms: int | None = None) -> None:
    say(f"  {text}" + ("" if took_ms is None else f" ({took_ms} ms)"))


def say(text: str) -> None:
    click.echo(text)
