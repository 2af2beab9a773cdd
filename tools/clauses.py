"""Prints every clause of the contract with the tests that prove it, and fails where one has none."""

import contextlib
import io
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


class _Collector:
    """Notes which tests name which clauses."""

    def __init__(self) -> None:
        self.tests: dict[str, set[str]] = defaultdict(set)
        self.everyday: set[str] = set()
        """Those that a test of `make test` names."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for mark in item.iter_markers("clause"):
                for clause in mark.args:
                    self.tests[clause].add(item.nodeid.partition("[")[0])
                if item.get_closest_marker("long") is None:
                    self.everyday.update(mark.args)


def problems(clauses: list[str], pending: dict[str, str], tests: dict[str, set[str]]) -> list[str]:
    """What keeps the contract from being covered: a clause neither tested nor pending, or a list out of date."""
    return [
        *(f"{clause}: no test names it" for clause in clauses if clause not in tests and clause not in pending),
        *(f"{clause}: has tests now; take it out of clauses-pending.txt" for clause in pending if clause in tests),
        *(f"{clause}: in clauses-pending.txt, but not a clause" for clause in pending if clause not in clauses),
        *(f"{clause}: named by {min(tests[clause])}, but not a clause" for clause in tests if clause not in clauses),
    ]


def read_pending(text: str) -> dict[str, str]:
    """Lines of clause ids, a colon, and what they wait for; # begins a comment."""
    pending = {}
    for line in text.splitlines():
        ids, _, reason = line.partition("#")[0].partition(":")
        pending.update(dict.fromkeys(ids.split(), reason.strip()))
    return pending


def main() -> int:
    clauses = (ROOT / "clauses.txt").read_text().split()
    pending = read_pending((ROOT / "clauses-pending.txt").read_text())
    collector = _Collector()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(["--collect-only", "-q", "-m", "", str(ROOT / "tests")], plugins=[collector])
    if code != pytest.ExitCode.OK:
        print(said.getvalue())
        return 1
    for clause in clauses:
        print(f"{clause:4} {'waits for ' + pending[clause] if clause in pending else ''}".rstrip())
        for test in sorted(collector.tests[clause]):
            print(f"       {test}")
    tests = {clause: names for clause, names in collector.tests.items() if names}
    found = problems(clauses, pending, tests)
    found += [f"{clause}: only long tests name it" for clause in tests if clause not in collector.everyday]
    print(f"\n{len(clauses)} clauses: {len(tests)} tested, {len(pending)} pending")
    for problem in found:
        print(f"clauses: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
