"""Hostile answers of upstreams: every parser gives what it may give, or says that the probe failed."""

import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Final

from lookout.core.model import Failed
from lookout.protocols.client.failure import ProbeFailed
from tests.contract.protocols.hostile import is_legal
from tests.contract.protocols.recorded import FOLDER, PARSERS, recorded
from tests.fuzz.fuzzer import Kind, Verdict, catch_errors, judge_alone
from tests.fuzz.mutation import change_json

Parser = Callable[[bytes], object]

_LONGEST_S: Final = 5.0
_LARGEST: Final = 256 * 1024  # sources read some MiB at most, and one such case would take the time of thousands
_BY_NAME: Final[dict[str, Parser]] = {name.replace(" ", "-"): parse for name, (parse, _) in PARSERS.items()}


@catch_errors
def judge_case(parsers: dict[str, Parser], case: bytes) -> Verdict:
    """A case is a parser's name, a line end, and an answer."""
    name, _, body = case.partition(b"\n")
    parse = parsers.get(name.decode("latin-1"))
    if parse is None:
        return Verdict("no parser")
    began = time.thread_time()
    try:
        found = parse(body)
        is_fine = is_legal(found)
    except ProbeFailed as failure:
        found, is_fine = failure.reason, is_legal(Failed(failure.reason))
    if not is_fine:
        return Verdict("illegal", f"the parser {name.decode()} gave {str(found)[:100]}")
    if time.thread_time() - began > _LONGEST_S:
        return Verdict("slow", f"the parser {name.decode()} took {time.thread_time() - began:.1f} s")
    return Verdict(f"{name.decode()} {found if isinstance(found, str) else type(found).__name__}")


def _seeds() -> list[bytes]:
    own = [name.replace(" ", "-").encode() + b"\n" + recorded(file) for name, (_, file) in PARSERS.items()]
    others = [
        name.encode() + b"\n" + file.read_bytes()
        for name, start in (("squid", "squid"), ("subgraph", "subgraph"), ("known-peers", "waku-peers"))
        for file in sorted(FOLDER.glob(f"{start}*.json"))
    ]
    return own + others


def _change(chance: Random, case: bytes, other: bytes) -> bytes:
    name, _, body = case.partition(b"\n")
    made = name + b"\n" + change_json(chance, body, other.partition(b"\n")[2])
    return made if len(made) <= _LARGEST else case


SOURCES: Final = Kind("answers of upstreams", _seeds, _change, lambda: judge_alone(partial(judge_case, _BY_NAME)))
