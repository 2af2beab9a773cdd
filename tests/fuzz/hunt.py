"""Kinds of hostile input, which Hypothesis makes and shrinks: so many of one in a test, as many as time allows in the
campaign."""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from hashlib import blake2b
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

_log: Final = logging.getLogger("campaign.hostile")
CORPUS: Final = Path(__file__).parent / "corpus"  # a folder for each kind: known attacks, and what failed once
_AT_ONCE: Final = 500  # examples of a seed
_LARGEST_SEED: Final = 10**9


class Found(AssertionError):  # noqa: N818  it is what is looked for
    """What is wrong with the product, and the bytes that show it."""

    def __init__(self, problem: str, case: bytes) -> None:
        super().__init__(f"{problem}; given {case[:2_000]!r}")
        self.case = case


class Kind(NamedTuple):
    cases: SearchStrategy[Any]
    judging: Callable[[], AbstractContextManager[Callable[[Any], str]]]
    """Gives what judges a case: a few words for what the case came to, or an error, Found or any other."""


def judge(kind: Kind, most: int) -> set[str]:
    """Judge so many cases, the same each time, and return what they came to."""
    outcomes: set[str] = set()
    with kind.judging() as judge_one:
        settings(max_examples=most)(given(kind.cases)(lambda case: outcomes.add(judge_one(case))))()
    return outcomes


def hunt(name: str, kind: Kind, seconds: float) -> tuple[int, list[str]]:
    """How many cases were judged until time was up, and the smallest that failed, which is kept."""
    tried, ends_at = 0, time.monotonic() + seconds
    campaign = settings(
        max_examples=_AT_ONCE,
        derandomize=False,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )

    def check(case: Any) -> None:
        nonlocal tried
        tried += 1
        judge_one(case)

    number = 0
    try:
        with kind.judging() as judge_one:
            while time.monotonic() < ends_at:
                number = SystemRandom().randrange(_LARGEST_SEED)
                seed(number)(campaign(given(kind.cases)(check)))()
    except Exception as error:  # noqa: BLE001  whatever it is, it is what is looked for
        kept = f", kept as {_keep(name, error.case)}" if isinstance(error, Found) else ""
        notes = " ".join(getattr(error, "__notes__", ()))[:2_000]
        return tried, [f"{name}, seed {number}: {type(error).__name__}: {error} {notes}{kept}"]
    _log.info(f"{name}: {tried:,} cases")
    return tried, []


def read_kept(name: str) -> dict[str, bytes]:
    """By name, which says what each is."""
    return {path.stem: path.read_bytes() for path in sorted((CORPUS / name).glob("*")) if path.is_file()}


def _keep(name: str, case: bytes) -> Path:
    """Give the file a better name once you have fixed what it found."""
    path = CORPUS / name / f"found-{blake2b(case, digest_size=6).hexdigest()}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case)
    return path
