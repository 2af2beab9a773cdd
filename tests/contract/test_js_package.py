"""The npm package of the JavaScript reader, as it is published: unpacked, loaded and tested by Node."""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.nodejs import READER, find_node
from tools.npm_package import make_package

LOADS = {
    "as a module": (
        "use.mjs",
        'import { canUse } from "lookout-reader"; import { rollUp } from "lookout-reader/page";',
    ),
    "as CommonJS": (
        "use.cjs",
        'const { canUse } = require("lookout-reader"); const { rollUp } = require("lookout-reader/page");',
    ),
}
USE = """
const needs = { chain: 1, services: ["ppoi"], now: Date.now() };
console.log(canUse(null, needs), rollUp(null, needs).status);
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the package is installed."""
    folder = tmp_path_factory.mktemp("project")
    modules = folder / "node_modules"
    with tarfile.open(fileobj=io.BytesIO(make_package()[1])) as archive:
        archive.extractall(modules)  # noqa: S202 - it was just built
    (modules / "package").rename(modules / "lookout-reader")
    return folder


def test_the_package_is_the_same_each_time() -> None:
    assert make_package() == make_package()


def test_the_package_has_what_it_needs_and_nothing_else() -> None:
    with tarfile.open(fileobj=io.BytesIO(make_package()[1])) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
    for path in READER.rglob("*"):
        if path.is_file():
            assert path.relative_to(READER).as_posix() in names
    assert {name.split("/")[0] for name in names} == {path.name for path in READER.iterdir()}


@pytest.mark.parametrize(("file", "load"), LOADS.values(), ids=LOADS)
def test_an_installed_package_is_loaded(project: Path, file: str, load: str) -> None:
    (project / file).write_text(load + USE)
    ran = subprocess.run([find_node(), file], cwd=project, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout, ran.stderr) == ("false unknown\n", "")


@pytest.mark.clause("C1", "C2", "C3", "C4")
def test_its_tests_run_from_the_package(project: Path) -> None:
    package = project / "node_modules" / "lookout-reader"
    files = [f"test/{name}.test.js" for name in ("vectors", "environments", "docs")]
    command = [find_node(), "--test", *files]
    ran = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_package_says_what_registries_ask_for() -> None:
    manifest = json.loads((READER / "package.json").read_text(encoding="utf-8"))
    wanted = {
        "name",
        "version",
        "description",
        "keywords",
        "license",
        "repository",
        "exports",
        "main",
        "types",
        "engines",
    }
    assert wanted <= manifest.keys()
    assert manifest["sideEffects"] is False
    assert "dependencies" not in manifest
