"""Cases of one kind, made from a seed and judged until time is up; one that fails is shrunk and kept."""

import logging
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Final, NamedTuple, ParamSpec

from tests.campaign.shrink import shrink

_log: Final = logging.getLogger("campaign.hostile")
CORPUS: Final = Path(__file__).parent / "corpus"  # a folder for each kind: known attacks, and what failed once
_BATCH: Final = 48
_LARGEST_POOL: Final = 2_000
_MOST_FAILURES: Final = 10
_MOST_TRIES: Final = 200  # to shrink one
_LOG_EVERY_S: Final = 60

P = ParamSpec("P")


class Verdict(NamedTuple):
    """``outcome`` says in a few words what a case came to: one that was not seen before is worth changing further."""

    outcome: str
    problem: str = ""


class Judge(NamedTuple):
    each: Callable[[Sequence[bytes]], list[Verdict]]
    afterwards: Callable[[], list[str]] = list
    """What only all cases together show: problems, in words."""
    figures: Callable[[], str] = str
    """The worst that was measured, in words."""


def catch_errors(judge: Callable[P, Verdict]) -> Callable[P, Verdict]:
    """An error that nobody expected is a verdict, too: it is what is looked for."""

    @wraps(judge)
    def verdict(*args: P.args, **kwargs: P.kwargs) -> Verdict:
        try:
            return judge(*args, **kwargs)
        except Exception as error:  # noqa: BLE001  whatever it is
            return Verdict("died", f"it died of {type(error).__name__}: {str(error)[:100]}")

    return verdict


def judge_alone(judge: Callable[[bytes], Verdict]) -> AbstractContextManager[Judge]:
    """What needs nothing but the case."""
    return nullcontext(Judge(lambda cases: [judge(case) for case in cases]))


@contextmanager
def judge_in_a_folder(judge: Callable[[Path, bytes], Verdict]) -> Iterator[Judge]:
    with tempfile.TemporaryDirectory() as folder:
        yield Judge(lambda cases: [judge(Path(folder), case) for case in cases])


class Kind(NamedTuple):
    """One kind of input. A case is always bytes, so that one shrinker and one folder of kept cases do for all."""

    what: str
    seeds: Callable[[], list[bytes]]
    change: Callable[[Random, bytes, bytes], bytes]
    """A new case out of a case and another one that may be spliced in."""
    judging: Callable[[], AbstractContextManager[Judge]]
    is_steady: bool = True
    """Whether a case alone comes to the same each time, so that it can be shrunk."""


class Tried(NamedTuple):
    cases: int
    outcomes: int
    failures: tuple[str, ...]


class Until(NamedTuple):
    """The end of a run: so many cases, or so many seconds."""

    cases: int | None = None
    seconds: float | None = None


def fuzz(name: str, kind: Kind, seed: int, until: Until, *, corpus: Path = CORPUS, keep_failures: bool = True) -> Tried:
    """Judge what is kept, then what chance makes of it. With a number of cases the same seed tries the same."""
    chance = Random(seed)
    pool = [*read_kept(name, corpus).values(), *kind.seeds()]
    seen: set[str] = set()
    failures: list[str] = []
    tried = 0
    began = logged = time.monotonic()
    with kind.judging() as judge:
        waiting = list(pool)
        while len(failures) < _MOST_FAILURES:
            if until.seconds is not None and time.monotonic() - began >= until.seconds:
                break
            batch = waiting[:_BATCH] or [
                kind.change(chance, chance.choice(pool), chance.choice(pool)) for _ in range(_BATCH)
            ]
            waiting = waiting[_BATCH:]
            batch = batch[: None if until.cases is None else until.cases - tried]
            if not batch:
                break
            for case, verdict in zip(batch, judge.each(batch), strict=True):
                if verdict.problem:
                    smallest, problem = _smallest(kind, judge, case, verdict)
                    found = f"kept as {keep(name, smallest, corpus)}" if keep_failures else repr(smallest[:300])
                    failures.append(f"{name}, seed {seed}: {problem}: {found}")
                    _log.info(failures[-1])
                elif verdict.outcome not in seen and len(pool) < _LARGEST_POOL:
                    seen.add(verdict.outcome)
                    pool.append(case)
            tried += len(batch)
            if time.monotonic() - logged >= _LOG_EVERY_S:
                logged = time.monotonic()
                _log.info(f"{name}, seed {seed}: {tried:,} cases, {len(seen):,} outcomes")
        failures += judge.afterwards()
        _log.info(f"{name}, seed {seed}: {tried:,} cases with {len(seen):,} outcomes {judge.figures()}")
    return Tried(tried, len(seen), tuple(failures))


def _smallest(kind: Kind, judge: Judge, case: bytes, verdict: Verdict) -> tuple[bytes, str]:
    """The smallest part of a case that still fails, and its problem."""
    smallest = case
    if kind.is_steady:
        tries = iter(range(_MOST_TRIES))
        smallest = shrink(
            case, lambda smaller: bool(judge.each([smaller])[0].problem), lambda: next(tries, None) is not None
        )
    return smallest, judge.each([smallest])[0].problem or verdict.problem


def read_kept(kind: str, corpus: Path = CORPUS) -> dict[str, bytes]:
    """By name, which says what each is."""
    return {path.stem: path.read_bytes() for path in sorted((corpus / kind).glob("*")) if path.is_file()}


def keep(kind: str, case: bytes, corpus: Path = CORPUS) -> Path:
    """Give the file a better name once you have fixed what it found."""
    path = corpus / kind / f"found-{blake2b(case, digest_size=6).hexdigest()}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case)
    return path
