"""The npm package of the JavaScript reader, as it is published: unpacked, loaded and tested by Node."""

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.nodejs import READER, ROOT, build_scripts, find_node, pack_reader

LOADS = {
    "as a module": (
        "use.mjs",
        """import { canUse } from "lookout-reader"; import { rollUp } from "lookout-reader/page";
        import { fakeReader } from "lookout-reader/testing";""",
    ),
    "as CommonJS": (
        "use.cjs",
        """const { canUse } = require("lookout-reader"); const { rollUp } = require("lookout-reader/page");
        const { fakeReader } = require("lookout-reader/testing");""",
    ),
}
USE = """
const needs = { chain: 1, services: ["ppoi"] };
console.log(canUse(null, needs), rollUp(null, needs).status, fakeReader().canUse(needs));
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the package is installed."""
    folder = tmp_path_factory.mktemp("project")
    modules = folder / "node_modules"
    with tarfile.open(pack_reader(folder)) as archive:
        archive.extractall(modules)  # noqa: S202 - it was just built
    (modules / "package").rename(modules / "lookout-reader")
    return folder


def test_the_package_has_what_it_needs_and_nothing_else(project: Path) -> None:
    package = project / "node_modules" / "lookout-reader"
    found = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    sources = {f"src/{path.name}" for path in (READER / "src").iterdir()} - {"src/embed.js"}
    parts = ("index", "page", "react", "testing")
    built = {f"commonjs/{name}{ending}" for name in parts for ending in (".js", ".d.ts")}
    built |= {"commonjs/package.json", "lookout-reader.js", "lookout-reader.d.ts"}
    others = {f"{name}/package.json" for name in parts[1:]} | {"package.json", "README.md", "LICENSE", "sbom.cdx.json"}
    assert found == sources | built | others


@pytest.mark.parametrize(("file", "load"), LOADS.values(), ids=LOADS)
def test_an_installed_package_is_loaded(project: Path, file: str, load: str) -> None:
    (project / file).write_text(load + USE)
    ran = subprocess.run([find_node(), file], cwd=project, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.stdout, ran.stderr) == ("false unknown true\n", "")


@pytest.mark.clause("C3", "C4", "C9", "C10")
def test_what_is_built_passes_its_tests(tmp_path: Path) -> None:
    package = tmp_path / "js"
    shutil.copytree(READER, package)
    build_scripts("reader", package)
    command = [find_node(), "--test", "test/environments.test.js"]
    ran = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "# skipped 0" in ran.stdout


def test_what_a_server_sends_is_built_of_todays_sources(tmp_path: Path) -> None:
    build_scripts("page", tmp_path / "built.json")
    committed = ROOT / "src" / "lookout" / "public" / "page" / "built.json"
    assert committed.read_bytes() == (tmp_path / "built.json").read_bytes(), "run: make schemas"


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
