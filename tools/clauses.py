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


def problems(clauses: list[str], tests: dict[str, set[str]]) -> list[str]:
    """What keeps the contract from being covered: a clause without a test, or a test of no clause."""
    return [
        *(f"{clause}: no test names it" for clause in clauses if clause not in tests),
        *(f"{clause}: named by {min(tests[clause])}, but not a clause" for clause in tests if clause not in clauses),
    ]


def read_clauses() -> list[str]:
    """The clauses of docs/contract.md: all ids but those reserved for what the code does not keep yet."""
    pending = (ROOT / "clauses-pending.txt").read_text().split()
    return [clause for clause in (ROOT / "clauses.txt").read_text().split() if clause not in pending]


def main() -> int:
    clauses = read_clauses()
    collector = _Collector()
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(["--collect-only", "-q", "-m", "", str(ROOT / "tests")], plugins=[collector])
    if code != pytest.ExitCode.OK:
        print(said.getvalue())
        return 1
    for clause in clauses:
        print(clause)
        for test in sorted(collector.tests[clause]):
            print(f"       {test}")
    tests = {clause: names for clause, names in collector.tests.items() if names}
    found = problems(clauses, tests)
    found += [f"{clause}: only long tests name it" for clause in tests if clause not in collector.everyday]
    print(f"\n{len(clauses)} clauses: {len(tests)} tested")
    for problem in found:
        print(f"clauses: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
