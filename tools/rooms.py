"""Takes each feature out of a copy of the tree, and checks that the rest stands without it.

A feature is its folder, its name in the registry, and its own command. What is left passes import-linter, mypy, and all
tests that do not name the feature.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
ROOMS: Final = "src/lookout/features"
FOLDERS: Final = ("tests/unit", "tests/contract", "tests/property")  # whose tests are run
# How tests name a feature without importing it: by its tables, keys, commands, metrics and entries.
NAMES: Final = {
    "alerts": re.compile(r"alert"),
    "witnesses": re.compile(r"witness"),
    "lists": re.compile(r"coverage|agrees_with|agreement|links|\bcomplete\b|incomplete"),
}
# The documents and the configurations that these read name every feature.
_OF_ALL: Final = ("tests/unit/test_docs.py", "tests/contract/config/test_check_config.py")


def find_rooms() -> list[str]:
    return sorted(folder.name for folder in (ROOT / ROOMS).iterdir() if (folder / "__init__.py").is_file())


def copy_without(room: str, folder: Path) -> list[str]:
    """Copy the tree into the folder without the feature; returns the tests that are left."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith(f"{ROOMS}/{room}/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    module = f"lookout.features.{room}"
    registry = folder / ROOMS / "registry.py"
    tree, lines = ast.parse(registry.read_text()), registry.read_text().splitlines(keepends=True)
    named = [node for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(module)]
    (name,) = (alias.name for node in named for alias in node.names)
    left = [line for number, line in enumerate(lines, 1) if number not in {node.lineno for node in named}]
    registry.write_text("".join(line for line in left if line.strip() != f"{name},"))
    removed = [module]
    for command in (folder / "src/lookout/cli").glob("*.py"):
        if module in command.read_text():
            command.unlink()
            removed.append(f"lookout.cli.{command.stem}")
            table = command.with_name("__init__.py")
            kept = (line for line in table.read_text().splitlines(keepends=True) if f'"{command.stem}",' not in line)
            table.write_text("".join(kept))
    return _take_out_tests(room, removed, folder)


def _take_out_tests(room: str, removed: list[str], folder: Path) -> list[str]:
    """Remove the tests, and what they share, that import the feature; returns the tests that do not name it either."""
    texts = {path: path.read_text() for top in ("tests", "tools", "bench") for path in (folder / top).rglob("*.py")}
    imports = {path: set(_imported(ast.parse(text))) for path, text in texts.items()}
    gone: set[Path] = set()
    while True:
        more = {
            path
            for path, modules in imports.items()
            if path not in gone and any(_is_in(module, removed) for module in modules)
        }
        if not more:
            break
        gone |= more
        modules_gone = (".".join(path.relative_to(folder).with_suffix("").parts) for path in more)
        removed = [*removed, *(module.removesuffix(".__init__") for module in modules_gone)]
    for path in gone:
        path.unlink()
    left = {path for path in texts if path not in gone and path.name.startswith("test_")}
    left = {path for path in left if not NAMES[room].search(texts[path])} - {folder / name for name in _OF_ALL}
    return sorted(str(path.relative_to(folder)) for path in left)


def _is_in(module: str, removed: list[str]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in removed)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def find_problems(room: str) -> Iterator[str]:
    """What does not stand without the feature."""
    with tempfile.TemporaryDirectory(prefix="lookout-without-") as name:
        folder = Path(name)
        left = [test for test in copy_without(room, folder) if test.startswith(FOLDERS)]
        tools = Path(sys.executable).parent
        environment = {"PATH": f"{tools}:/usr/bin:/bin", "PYTHONPATH": f"{folder}/src:{folder}/readers/python/src"}
        commands: dict[str, list[str | Path]] = {
            "import-linter": [tools / "lint-imports", "--no-cache"],
            "mypy": [tools / "mypy"],
            f"{len(left)} files of tests": [tools / "python", "-m", "pytest", "-n", "2", "-q", *left],
        }
        for what, command in commands.items():
            ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
            print(f"without {room}: {what} {'fail' if ran.returncode else 'pass'}", flush=True)
            if ran.returncode:
                yield f"without {room}, {what} fail:\n{(ran.stdout + ran.stderr).decode()[-4000:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rooms", nargs="*", help="only these features")
    problems = [problem for room in parser.parse_args().rooms or find_rooms() for problem in find_problems(room)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
