"""Asks PyPI whether a pinned dependency has a known vulnerability. Needs the internet, and pip-audit."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
FINE: Final = 0
VULNERABLE: Final = 1
NOT_KNOWN: Final = 2
_LONGEST_REASON: Final = 150

Package = dict[str, Any]  # as pip-audit writes it: name, and version and vulns, or skip_reason


class NothingFoundError(Exception):
    """Nobody could be asked; the text says why, in one sentence."""


class Verdict(NamedTuple):
    exit_code: int
    lines: list[str]


def packages_in(found: str, said: str) -> list[Package]:
    """What pip-audit found, as JSON; without that, what it said last is the reason."""
    if not found.strip():
        why = said.strip().rpartition("\n")[2][:_LONGEST_REASON]
        raise NothingFoundError(f"audit: PyPI could not be asked, which needs the internet: {why}")
    packages: list[Package] = json.loads(found)["dependencies"]
    return packages


def judge(packages: Iterable[Package]) -> Verdict:
    """To pip-audit, a package that PyPI does not know is as good as one without a vulnerability; not so here."""
    once = list({(package["name"], package.get("version")): package for package in packages}.values())
    unknown = sorted(package["name"] for package in once if "skip_reason" in package)
    flaws = [
        f"{package['name']} {package['version']}: {flaw['id']}, {_fix_of(flaw['fix_versions'])}"
        for package in once
        for flaw in package.get("vulns", [])
    ]
    if flaws:
        return Verdict(VULNERABLE, flaws)
    if unknown:
        what = f"audit: PyPI does not know {len(unknown)} of {len(once)} packages, for example {unknown[0]}"
        return Verdict(NOT_KNOWN, [what])
    return Verdict(FINE, [f"{len(once)} packages, and no vulnerability of them is known"])


def _fix_of(versions: list[str]) -> str:
    return f"fixed in {', '.join(versions)}" if versions else "not fixed yet"


def _asked(pins: Path) -> list[Package]:
    command = [sys.executable, "-m", "pip_audit", "--require-hashes", "--disable-pip", "--progress-spinner", "off"]
    command += ["--format", "json", "--desc", "off", "--requirement", str(pins)]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    return packages_in(outcome.stdout, outcome.stderr)


def main() -> int:
    try:
        exit_code, lines = judge(
            package for pins in sorted((ROOT / "requirements").glob("*.txt")) for package in _asked(pins)
        )
    except NothingFoundError as error:
        exit_code, lines = NOT_KNOWN, [str(error)]
    print("\n".join(lines), file=sys.stdout if exit_code == FINE else sys.stderr)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
