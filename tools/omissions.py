"""Leaves out, one at a time, what the assembly passes on, and checks that a test of `make test` fails.

The tests named beside an omission are those that notice it, so that a run takes minutes; ``--all`` asks every test.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
TABLE: Final = ROOT / "tools" / "omissions.toml"


class Omission(NamedTuple):
    what: str
    file: str
    code: str  # occurs once in the file
    without: str
    tests: str  # that fail then


# Without these nothing starts, so every test would fail; or they are left out where they are made.
VITAL: Final = (
    "clock feature host instruments journal ledger machine machine.open_thread machine.store "
    "machine.writer notices pinger plan publisher settings stored upstreams watcher "
    "*site callers folder machine.clock of_address poller poller.site.paths responder"
)
ASSEMBLIES: Final = {
    "build_monitor": "src/lookout/monitor/assembly.py",
    "build_server": "src/lookout/server/assembly.py",
}
# What an omission may put in the place of what it leaves out.
IMPORTS: Final = """
from typing import Any
from lookout.base.admin_port import Readiness, process_registry
from lookout.base.clock import SystemClock
from lookout.config.tables import HistoryTable, PingTable, PolicyTable, ServerSettings
from lookout.core.notices import Notices
"""


def read_omissions() -> list[Omission]:
    return [Omission(**row) for row in tomllib.loads(TABLE.read_text())["omission"]]


def find_problems(omissions: Iterable[Omission]) -> Iterator[str]:
    """Omissions of code that is no longer there, and arguments in an assembly that no omission leaves out."""
    for omission in omissions:
        if (times := (ROOT / omission.file).read_text().count(omission.code)) != 1:
            yield f"{omission.what}: {omission.code!r} is {times} times in {omission.file}"
    for function, file in ASSEMBLIES.items():
        source = (ROOT / file).read_text()
        left_out = [_changed_part(omission, source) for omission in omissions if omission.code in source]
        for begin, end in _arguments_in(function, source):
            is_left_out = any(first <= end and begin <= last for first, last in left_out)
            if not is_left_out and source[begin:end] not in VITAL.split():
                yield f"{function} passes on {source[begin:end]}, and no omission leaves it out"


def _changed_part(omission: Omission, source: str) -> tuple[int, int]:
    """Where the code stands that an omission replaces, without what it leaves as it is."""
    begin, code, without = source.find(omission.code), omission.code, omission.without
    same = _count_same(code, without)
    return begin + same, begin + len(code) - _count_same(code[same:][::-1], without[same:][::-1])


def _count_same(one: str, other: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _arguments_in(function: str, source: str) -> Iterator[tuple[int, int]]:
    """Where each argument stands that the function passes on as it is."""
    lines = [0, *(at + 1 for at, character in enumerate(source) if character == "\n")]
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            for call in (call for call in ast.walk(node) if isinstance(call, ast.Call)):
                for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
                    if not isinstance(argument, ast.Call):
                        begin = lines[argument.lineno - 1] + argument.col_offset
                        yield begin, lines[(argument.end_lineno or 0) - 1] + (argument.end_col_offset or 0)


def plant(omission: Omission, folder: Path) -> None:
    """Copy the packages into the folder, without what the omission leaves out."""
    shutil.copytree(ROOT / "src", folder / "src")
    planted = folder / omission.file
    code = planted.read_text().replace(omission.code, omission.without)
    if "/config/" not in omission.file:  # it would import itself
        docstring, quotes, rest = code.partition('"""\n')
        code = docstring + quotes + IMPORTS + rest
    planted.write_text(code)
    subprocess.run([sys.executable, "-m", "ruff", "check", "-q", "--select", "F821", "--isolated", planted], check=True)


def survives(omission: Omission, tests: Iterable[str]) -> bool:
    """Whether no test notices."""
    with tempfile.TemporaryDirectory(prefix="lookout-omission-") as name:
        plant(omission, Path(name))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": str(Path(name) / "src")}
        ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
        if ran.returncode not in (0, 1):
            raise RuntimeError(f"{omission.what}: {ran.stdout.decode()}{ran.stderr.decode()}")
        return ran.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="ask every test, not only those that the table names")
    parser.add_argument("named", nargs="*", help="only omissions whose names contain one of these")
    asked = parser.parse_args()
    omissions = read_omissions()
    problems = list(find_problems(omissions))
    chosen = [each for each in omissions if not asked.named or any(name in each.what for name in asked.named)]
    for omission in chosen if not problems else ():
        is_missed = survives(omission, ("-n", "4", "tests") if asked.all else omission.tests.split())
        print(f"{'SURVIVES' if is_missed else 'noticed ':8}  {omission.what}", flush=True)
        problems += [f"without {omission.what} all tests pass"] if is_missed else []
    for problem in problems:
        print(f"omissions: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
