"""Hostile bytes on every socket and in every file: whatever comes, it is answered, read, or refused in words."""

from random import SystemRandom
from typing import Final

from tests.campaign.part import Outcome, Part
from tests.fuzz.fuzzer import Until, fuzz
from tests.fuzz.kinds import KINDS
from tests.fuzz.readers import NODE
from tests.integration.edged import VARNISHD, VSTHROTTLE

_LARGEST_SEED: Final = 10**9


def _run(seconds: float) -> Outcome:
    """Shares its time out over the kinds, each with a seed of its own."""
    names = [name for name in KINDS if name != "edge" or (VARNISHD and VSTHROTTLE)]
    tried: dict[str, int] = {}
    failures: list[str] = []
    for name in names:
        seed = SystemRandom().randrange(_LARGEST_SEED)
        found = fuzz(name, KINDS[name], seed, Until(seconds=seconds / len(names)))
        tried[f"{name} cases"] = found.cases
        failures += found.failures
    missing = [what for what, is_there in (("Varnish", "edge" in names), ("Node", bool(NODE))) if not is_there]
    return Outcome(tried, tuple(failures), f"needs {' and '.join(missing)}" if missing else "")


PART: Final = Part("hostile bytes on every socket and in every file, from a grammar and by mutation", 10, _run)
