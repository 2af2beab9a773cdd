"""Builds everything that is published from the last commit, twice, checks it, and lists it with sizes and hashes."""

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from packaging.metadata import Metadata

from tools.sbom import NAME as SBOM
from tools.sbom import build_sboms

ROOT: Final = Path(__file__).parent.parent
MONITOR: Final = "src/lookout/__init__.py"
READER: Final = "readers/python/src/lookout_reader/version.py"
CHANGES: Final = "the first heading of CHANGELOG.md"
HATCHLING: Final = (sys.executable, "-m", "hatchling", "build")
# The folders of what is published for Python, and what each one's wheel installs.
FOLDERS: Final = ("readers/python", ".")
CASES: Final = "tests/data/vectors/reader"  # for readers in other languages
PACKAGES: Final = {"lookout-reader": "lookout_reader", "lookout-monitor": "lookout"}
# Where the second build differs from the first: no file may.
SETTINGS: Final = ({"TZ": "UTC", "PYTHONHASHSEED": "1"}, {"TZ": "Asia/Kolkata", "PYTHONHASHSEED": "2"})


class BuildError(Exception):
    """A program failed; the text is the end of what it said."""


def read_versions(tree: Path) -> dict[str, str | None]:
    """Each place where the version stands, with what stands there."""
    needs = "\n".join(_read_project(tree)["dependencies"])
    headings = _read(tree, "CHANGELOG.md").partition("\n## ")[2]
    return {
        MONITOR: _find(r'^__version__ = "(.+)"$', _read(tree, MONITOR)),
        READER: _find(r'^__version__ = "(.+)"$', _read(tree, READER)),
        "the dependency in pyproject.toml": _find(r"^lookout-reader==(.+)$", needs),
        "readers/js/package.json": json.loads(_read(tree, "readers/js/package.json"))["version"],
        CHANGES: _find(r"\A(\S+), \d{4}-\d\d-\d\d$", headings) or "no version with its date",
    }


def check_versions(versions: Mapping[str, str | None]) -> list[str]:
    wanted = versions[MONITOR]
    return [f"{place}: {found}, not {wanted}" for place, found in versions.items() if found != wanted]


def check_urls(place: str, urls: Mapping[str, str]) -> list[str]:
    """What is wrong with where the project is said to be. What ends in .example is nobody's (RFC 2606)."""
    if not urls:
        return [f"{place} does not say where the project is"]
    hosts = {name: urlsplit(url).hostname or "" for name, url in urls.items()}
    return [
        f"{place}: {name} is at {host}, which is nobody's" for name, host in hosts.items() if host.endswith(".example")
    ]


def check_commit(root: Path) -> list[str]:
    return ["there are changes that are not committed"] if _run(["git", "status", "--porcelain"], root) else []


def check_tree(tree: Path) -> list[str]:
    """What is wrong with the sources."""
    problems = check_versions(read_versions(tree))
    for reader in ("readers/python", "readers/js"):
        if _read(tree, f"{reader}/LICENSE") != _read(tree, "LICENSE"):
            problems.append(f"{reader}/LICENSE is not a copy of LICENSE")
    for folder in FOLDERS:
        problems += check_urls(
            f"[project.urls] of {Path(folder, 'pyproject.toml')}", _read_project(tree / folder).get("urls", {})
        )
    repository = json.loads(_read(tree, "readers/js/package.json"))["repository"]
    problems += check_urls("repository of readers/js/package.json", {"url": repository["url"]})
    for path, text in build_sboms(tree).items():
        if path.read_text(encoding="utf-8") != text:
            problems.append(f"{path.relative_to(tree)} is out of date: make schemas")
    return problems


def check_wheel(wheel: Path, version: str | None) -> list[str]:
    """What is wrong with a wheel: what it says of itself, what it lacks, what it has and should not."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (described,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Metadata.from_email(archive.read(described))  # raises what an index would refuse it for
    info = described.removesuffix("/METADATA")
    package = PACKAGES[metadata.name]
    wanted = {f"{package}/py.typed", f"{info}/licenses/LICENSE", f"{info}/sboms/{SBOM}"}
    strange = [name for name in sorted(names) if not name.startswith((f"{package}/", f"{info}/"))]
    return [
        *(f"{wheel.name} lacks {name}" for name in sorted(wanted - names)),
        *(f"{wheel.name} has {name}" for name in strange),
        *([] if str(metadata.version) == version else [f"{wheel.name} says that it is {metadata.version}"]),
    ]


def check_tarball(tarball: Path, version: str | None) -> list[str]:
    with tarfile.open(tarball) as archive:
        described = archive.extractfile("package/package.json")
        found = json.loads(described.read()) if described else {}
    says = (found.get("name"), found.get("version"))
    return [] if says == ("lookout-reader", version) else [f"{tarball.name} says that it is {says[0]} {says[1]}"]


def compare_builds(first: Path, second: Path) -> list[str]:
    return [
        f"{path.name} is another file when it is built again"
        for path in sorted(second.iterdir())
        if not (first / path.name).is_file() or path.read_bytes() != (first / path.name).read_bytes()
    ]


def release(root: Path, out: Path) -> list[str]:
    """Write everything to publish into a folder; returns what is in the way of publishing it."""
    problems = check_commit(root)
    with tempfile.TemporaryDirectory(prefix="lookout-release-") as name:
        folder = Path(name)
        tree, again, wheels = folder / "tree", folder / "again", folder / "wheels"
        for place, target, settings in ((folder / "elsewhere", again, SETTINGS[1]), (tree, out, SETTINGS[0])):
            _build(root, place, target, settings)
        _build_wheels(out, folder / "sources", wheels)
        problems += check_tree(tree) + compare_builds(out, again) + compare_builds(out, wheels)
        version = read_versions(tree)[MONITOR]
    for wheel in sorted(out.glob("*.whl")):
        problems += check_wheel(wheel, version)
    for tarball in out.glob("*.tgz"):
        problems += check_tarball(tarball, version)
    return problems


def _build(root: Path, tree: Path, out: Path, settings: Mapping[str, str]) -> None:
    """The last commit's packages: both for Python, each as a wheel and as its source, the one for npm, and the cases of
    the readers.

    They are built from a copy of the commit, in which nothing else lies and files have the same modes for everybody.
    """
    with tarfile.open(fileobj=io.BytesIO(_run(["git", "-c", "tar.umask=0022", "archive", "HEAD"], root))) as files:
        files.extractall(tree)  # noqa: S202 - it is our own
    committed_at = _run(["git", "log", "-1", "--format=%ct"], root).decode().strip()
    settings = {**settings, "SOURCE_DATE_EPOCH": committed_at}
    out.mkdir()
    for folder in FOLDERS:
        _run([*HATCHLING, "-d", out], tree / folder, settings)
    cases = out / f"lookout-reader-cases-{read_versions(tree)[MONITOR]}.tar"
    _run(["git", "-c", "tar.umask=0022", "archive", "-o", cases, "HEAD", CASES], root)
    _run(["npm", "ci"], tree / "tools" / "js")
    _run(["node", "build.mjs", "reader", tree / "readers" / "js"], tree / "tools" / "js")
    _run(["npm", "pack", "--loglevel=error", "--pack-destination", out], tree / "readers" / "js", settings)


def _build_wheels(out: Path, folder: Path, wheels: Path) -> None:
    """The wheels again, from nothing but the packages of their sources."""
    for source in out.glob("*.tar.gz"):
        with tarfile.open(source) as files:
            files.extractall(folder)  # noqa: S202 - it was just built
    for source in folder.iterdir():
        committed_at = str(int((source / "PKG-INFO").stat().st_mtime))
        _run([*HATCHLING, "-t", "wheel", "-d", wheels], source, {"SOURCE_DATE_EPOCH": committed_at})


def _run(command: Sequence[str | Path], folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> bytes:
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **settings}, capture_output=True, check=False)
    except FileNotFoundError as missing:
        raise BuildError(f"{missing.filename} is missing") from missing
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise BuildError(f"{' '.join(map(str, command))} failed in {folder}: {said}")
    return done.stdout


def _read(tree: Path, path: str) -> str:
    return (tree / path).read_text(encoding="utf-8")


def _read_project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads(_read(folder, "pyproject.toml"))["project"]
    return project


def _find(pattern: str, text: str) -> str | None:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else None


def main() -> int:
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    try:
        problems = release(ROOT, out)
    except BuildError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:>10,}  {hashlib.sha256(path.read_bytes()).hexdigest()}  dist/{path.name}")
    for problem in problems:
        print(f"not to be published: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
