"""What `make release` builds, installed from the built files into environments that have no sources, and used there."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.commands import meanwhile, said
from tests.integration.served import a_free_port
from tests.wait import until
from tools.release import check_commit, check_tree
from tools.sbom import build_sboms

ROOT: Final = Path(__file__).parent.parent.parent
BUILT_OF: Final = (
    *("CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "lookout.example.toml", "pyproject.toml", "sbom.cdx.json"),
    *("readers", "requirements", "src", "tests/data/vectors/reader", "tools", ".gitignore"),
)
READ: Final = """
import sys
from lookout_reader import effective_status, find_row, poll

update = next(update for update in poll(sys.argv[1], "protocol") if update.history)
row = find_row(update.report, "ppoi", 1)
print(len(update.report.rows), len(update.history.rows), effective_status(row))
"""


class Released(NamedTuple):
    files: Path
    listed: str


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This tree as a repository of its own, in which everything is as before a release."""
    for program in ("git", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed: the packages were not built")
    folder = tmp_path_factory.mktemp("repository")
    for name in BUILT_OF:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        options: Any = {"symlinks": True, "ignore": shutil.ignore_patterns("__pycache__", "node_modules")}
        copy(ROOT / name, folder / name, **(options if copy is shutil.copytree else {}))
    for name in ("pyproject.toml", "readers/python/pyproject.toml", "readers/js/package.json"):
        text = (folder / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("https://lookout.example/", "https://example.org/"), encoding="utf-8")
    version = re.search(r'"(.+)"', (ROOT / "src" / "lookout" / "__init__.py").read_text().partition("__version__")[2])
    assert version
    (folder / "CHANGELOG.md").write_text(f"# Changes\n\n## {version[1]}, 2026-11-17\n", encoding="utf-8")
    commit(folder)
    return folder


def commit(folder: Path) -> None:
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@lookout.example", "-c", "commit.gpgsign=false")
    run("git", "init", "-q", cwd=folder)
    run("git", "add", "--all", cwd=folder)
    run("git", *who, "commit", "-q", "-m", "All of it", cwd=folder)


@pytest.fixture(scope="module")
def released(repository: Path) -> Released:
    listed = run(sys.executable, "-m", "tools.release", cwd=repository)
    return Released(repository / "dist", listed)


@pytest.fixture(scope="module")
def reader(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the reader's wheel and nothing else."""
    return install(tmp_path_factory.mktemp("reader"), *released.files.glob("lookout_reader-*.whl"))


@pytest.fixture(scope="module")
def service(released: Released, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with both wheels. What the service needs besides is that of the tests."""
    python = install(tmp_path_factory.mktemp("service"), *released.files.glob("*.whl"))
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(packages) / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="module")
def demo(service: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the demo, as the wheel runs it."""
    folder, address = tmp_path_factory.mktemp("demo"), f"127.0.0.1:{a_free_port()}"
    command = ("env", "-u", "PYTHONPATH", service.with_name("lookout"), "demo", "--listen", address)
    with meanwhile(folder, *command) as process:

        def started() -> bool:
            assert process.poll() is None, said(folder)
            return "Ctrl-C ends it" in said(folder)

        until(started, "the demo has started", within_s=150)
        yield f"http://{address}"


def install(folder: Path, *wheels: Path) -> Path:
    venv.create(folder / "env", with_pip=False, symlinks=True)
    python = folder / "env" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", *wheels)
    return python


def run(*command: str | Path, cwd: Path | None = None, exit_code: int = 0) -> str:
    # Without the path by which the tests find the sources.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == exit_code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_everything_to_publish_is_listed_with_its_size_and_hash(released: Released) -> None:
    files = sorted(released.files.iterdir())
    assert [re.sub(r"-\d.*?(?=[.-][a-z])", "", path.name) for path in files] == [
        "lookout-reader.tgz",
        "lookout-reader-cases.tar",
        "lookout_monitor-py3-none-any.whl",
        "lookout_monitor.tar.gz",
        "lookout_reader-py3-none-any.whl",
        "lookout_reader.tar.gz",
    ]
    lines = [
        (f"{path.stat().st_size:,}", hashlib.sha256(path.read_bytes()).hexdigest(), f"dist/{path.name}")
        for path in files
    ]
    assert [tuple(line.split()) for line in released.listed.splitlines()] == lines


@pytest.mark.long
def test_a_wheel_says_what_it_contains_and_what_it_needs(released: Released, repository: Path) -> None:
    found = []
    for wheel in sorted(released.files.glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            (sbom,) = (name for name in archive.namelist() if "/sboms/" in name)
            found.append(archive.read(sbom).decode())
    written = build_sboms(repository)
    assert sorted(found) == sorted(text for path, text in written.items() if path.parent.name != "js")


def test_what_is_not_ready_is_named(repository: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(repository, tree, symlinks=True, ignore=shutil.ignore_patterns(".git", "dist"))
    assert check_tree(tree) == []
    package, project = tree / "readers" / "js" / "package.json", tree / "pyproject.toml"
    package.write_text(package.read_text().replace('"version": "', '"version": "9'))
    project.write_text(project.read_text().replace("[project.urls]", "[tool.other]"))
    (tree / "readers" / "python" / "LICENSE").write_text("Buy it.")
    (tree / "CHANGELOG.md").write_text("# Changes\n\n## Unreleased\n\n## 0.0.1, 2026-11-17\n")
    version = json.loads(package.read_text())["version"]
    assert check_tree(tree) == [
        f"readers/js/package.json: {version}, not {version[1:]}",
        f"the first heading of CHANGELOG.md: no version with its date, not {version[1:]}",
        "readers/python/LICENSE is not a copy of LICENSE",
        "[project.urls] of pyproject.toml does not say where the project is",
        "readers/js/sbom.cdx.json is out of date: make schemas",
        "sbom.cdx.json is out of date: make schemas",
    ]


def test_what_is_not_committed_is_not_published(tmp_path: Path) -> None:
    (tmp_path / "finished.txt").touch()
    commit(tmp_path)
    assert check_commit(tmp_path) == []
    (tmp_path / "unfinished.txt").touch()
    assert check_commit(tmp_path) == ["there are changes that are not committed"]


@pytest.mark.long
def test_the_reader_alone_reads_a_deployment(reader: Path, demo: str) -> None:
    live, history, status = run(reader, "-c", READ, demo).split()
    assert live == history
    assert int(live) > 10
    assert status in {"current", "catching-up", "degraded", "unavailable", "unknown"}


@pytest.mark.long
def test_the_service_of_the_wheel_keeps_the_contract_by_its_own_account(service: Path, demo: str) -> None:
    where = run(service, "-c", "import lookout, lookout_reader as r; print(lookout.__file__, r.__file__)")
    assert [Path(each).is_relative_to(service.parent.parent) for each in where.split()] == [True, True]
    findings = run(service.with_name("lookout"), "verify", "--all", demo)
    assert re.search(r"clauses 0 fail, [1-9]\d* pass", findings)
