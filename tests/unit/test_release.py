"""What `make release` finds wrong, and what the SBOMs say."""

import ast
import json
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from lookout import __version__
from tools import release
from tools.sbom import build_sboms

ROOT: Final = Path(__file__).parent.parent.parent
READER: Final = ROOT / "readers" / "python" / "src" / "lookout_reader"
METADATA: Final = b"Metadata-Version: 2.4\nName: lookout-reader\nVersion: 1.2.3\n"
INFO: Final = "lookout_reader-1.2.3.dist-info"
WHOLE: Final = {
    "lookout_reader/py.typed": b"",
    f"{INFO}/METADATA": METADATA,
    f"{INFO}/licenses/LICENSE": b"",
    f"{INFO}/sboms/sbom.cdx.json": b"",
}
# Not on Windows, or with less in them there: https://docs.python.org/3/library/unix.html
OF_SOME_SYSTEMS: Final = {
    *("crypt", "curses", "fcntl", "grp", "nis", "os", "ossaudiodev", "posix", "pty", "pwd", "readline", "resource"),
    *("select", "signal", "spwd", "subprocess", "syslog", "termios", "tty"),
}


def test_the_version_is_the_same_in_every_file_that_has_it() -> None:
    versions = release.read_versions(ROOT)
    wrong = release.check_versions(versions)
    assert len(versions) == 5
    assert [problem for problem in wrong if release.CHANGES not in problem] == []  # whose next version has no date yet


@pytest.mark.parametrize(
    ("changed", "problems"),
    [
        pytest.param({}, [], id="a wheel as it should be"),
        pytest.param(
            {"lookout_reader/py.typed": None}, ["a.whl lacks lookout_reader/py.typed"], id="without its types"
        ),
        pytest.param(
            {f"{INFO}/sboms/sbom.cdx.json": None}, [f"a.whl lacks {INFO}/sboms/sbom.cdx.json"], id="without its SBOM"
        ),
        pytest.param({"tests/secret.txt": b""}, ["a.whl has tests/secret.txt"], id="with what nobody asked for"),
        pytest.param(
            {f"{INFO}/METADATA": METADATA.replace(b"1.2.3", b"1.2.4")},
            ["a.whl says that it is 1.2.4"],
            id="of another version",
        ),
    ],
)
def test_a_wheel_is_checked(changed: dict[str, bytes | None], problems: list[str], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        for name, content in {**WHOLE, **changed}.items():
            if content is not None:
                wheel.writestr(name, content)
    assert release.check_wheel(tmp_path / "a.whl", "1.2.3") == problems


def test_the_lowest_versions_that_are_tested_are_those_that_are_accepted() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    accepted = map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["alerts"]])
    lines = (ROOT / "requirements" / "lowest.in").read_text().splitlines()
    tested = {wanted.name: wanted for wanted in map(Requirement, filter(lambda line: line[:1] != "#", lines))}
    for wanted in accepted:
        if wanted.name != "lookout-reader":  # which is of this repository
            (bound,), (pin,) = wanted.specifier, tested.pop(wanted.name).specifier
            assert (bound.operator, Version(bound.version)) == (">=", Version(pin.version)), wanted.name
    assert tested == {}


def test_the_sboms_are_fresh() -> None:
    sboms = build_sboms(ROOT)
    assert len(sboms) == 3
    for path, text in sboms.items():
        assert path.read_text(encoding="utf-8") == text, "run: make schemas"


def test_the_sbom_of_the_service_lists_what_is_pinned_with_its_version() -> None:
    sbom: Any = json.loads(build_sboms(ROOT)[ROOT / "sbom.cdx.json"])
    assert sbom["metadata"]["component"]["type"] == "application"
    listed = {each["purl"]: each.get("scope") for each in sbom["components"]}
    pinned = {
        f"pkg:pypi/{line.split()[0].replace('==', '@')}": scope
        for file, scope in (("alerts", "optional"), ("run", "required"))
        for line in (ROOT / "requirements" / f"{file}.txt").read_text().splitlines()
        if "==" in line.split(" ")[0]
    }
    own = {
        f"pkg:pypi/lookout-reader@{__version__}": "required",
        f"pkg:npm/lookout-reader@{__version__}": None,  # contained
    }
    assert listed == pinned | own
    assert len(pinned) > 30
    assert all(each["purl"].endswith(f"@{each['version']}") for each in sbom["components"])
    (graph,) = sbom["dependencies"]
    assert sorted(graph["dependsOn"]) == sorted(each["bom-ref"] for each in sbom["components"])


def test_the_reader_imports_nothing_but_what_every_system_has() -> None:
    files = sorted(READER.glob("*.py"))
    imported = {name.partition(".")[0] for file in files for name in imports_of(file)}
    assert {"lookout_reader", "urllib", "threading"} <= imported
    assert imported - sys.stdlib_module_names == {"lookout_reader"}
    assert imported & OF_SOME_SYSTEMS == set()


def imports_of(file: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found
