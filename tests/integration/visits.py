"""``lookout verify``, as a function and as a command, and what it cannot tell."""

import time
from collections.abc import Callable
from typing import Final

from click.testing import CliRunner, Result

from lookout.base.clock import Clock, SystemClock
from lookout.base.url import parse_base_url
from lookout.cli import main
from lookout.verify.clauses import verify_visit
from lookout.verify.documents import Remark
from lookout.verify.visit import Visit, VisitOptions, visit
from tests.integration.planted import Break, Resources, a_deployment

# What one visit of a healthy bare server cannot show.
_CLAUSES = """
    M1 M2 M3 M4 M5 M6 M7 M8 M9 M10 M11 M12 M13 M14 M15 M16 M17 R14 S2 S4 S5 S6 S8 S9 S15 S16 S17 S18 S19 S20 S21
    H6 H7 H8 H13 H14 H15 H16 H17 A11 A12 A13 A16 E2 E3 E4 E5 E6 V1 V2 W1 W2 W3 W4 W5 W6 W7 W8 W9
"""
NOT_SEEN: Final = set(_CLAUSES.split())


def found(base: str, options: VisitOptions | None = None) -> list[Remark]:
    return verify_visit(visited(base, options))


def inspect(real: Resources, breaks: Break | None = None) -> list[Remark]:
    """What is found in a deployment with these replies."""
    with a_deployment(lambda _: real, breaks) as deployment:
        return found(deployment.base)


def visited(
    base: str,
    options: VisitOptions | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Clock | None = None,
) -> Visit:
    """Patient, unless said otherwise: the machine may be slow."""
    return visit(parse_base_url(base), options or VisitOptions(timeout_s=20), clock or SystemClock(), sleep)


def clauses(findings: list[Remark], verdict: str) -> set[str]:
    return {finding.clause for finding in findings if finding.verdict == verdict}


def command(*arguments: str, **environment: str) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(main, ["verify", *arguments], env=environment)
