"""Nothing is installed whose hash is not pinned."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from tools.audit import FINE, NOT_KNOWN, VULNERABLE, Verdict, judge, packages_in

ROOT: Final = Path(__file__).parent.parent.parent
HASH: Final = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")
INSTALLING: Final = re.compile(r"\$\(PIP\)|\bpip3? (?:\S+ )*?(?:install|wheel)\b|\buv pip (?:install|sync)\b|\bnpm i")
# From this very folder, and bringing nothing along.
OWN: Final = re.compile(
    r"--no-deps (--no-build-isolation (--wheel-dir dist \./readers/python|--editable readers/python --editable) \."
    r"|dist/lookout_\*\.whl)$"
)


PINS: Final = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("pins", PINS, ids=lambda pins: pins.name)
def test_every_requirement_is_one_version_with_its_hashes(pins: Path) -> None:
    joined = pins.read_text().replace("\\\n", " ")
    requirements = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert requirements
    for requirement in requirements:
        assert re.match(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==\S+ ", requirement), requirement
        assert HASH.search(requirement), requirement


def test_every_list_of_requirements_is_pinned() -> None:
    assert {pins.stem for pins in PINS} == {wanted.stem for wanted in (ROOT / "requirements").glob("*.in")}


def installing_commands() -> list[str]:
    files = [ROOT / "Makefile", *(file for room in (".ci", "deploy") for file in (ROOT / room).rglob("*"))]
    commands = (
        command.strip()
        for file in files
        if file.is_file()
        for line in file.read_text().replace("\\\n", " ").splitlines()
        if not re.match(r"PIP :=|\s*#", line)
        for command in re.split(r"&&|\|\||;", line)
    )
    return [command for command in commands if INSTALLING.search(command)]


def test_nothing_is_installed_without_its_hash() -> None:
    commands = installing_commands()
    assert len(commands) >= 4
    assert [each for each in commands if "--require-hashes" not in each and not OWN.search(each)] == []


def test_what_builds_javascript_is_pinned_by_its_hash() -> None:
    packages = json.loads((ROOT / "tools" / "js" / "package-lock.json").read_text())["packages"]
    assert [name for name, package in packages.items() if name and "integrity" not in package] == []
    assert "ignore-scripts=true" in (ROOT / "tools" / "js" / ".npmrc").read_text().splitlines()


def test_nothing_is_built_that_was_fetched() -> None:
    texts = (page.read_text().replace("\\\n", " ") for page in (ROOT / "docs").glob("*.md"))
    pages = [line for text in texts for line in text.splitlines()]
    fetching = [each for each in (*installing_commands(), *pages) if "--require-hashes" in each]
    assert len(fetching) >= 5
    assert [each for each in fetching if "--only-binary :all:" not in each] == []
    # What there is only as its source is built by what is installed already, of which the hash was checked.
    assert [each for each in fetching if "--no-binary" in each and "--no-build-isolation" not in each] == []


def test_no_container_is_built_on_an_image_without_its_digest() -> None:
    lines = (ROOT / "deploy" / "Containerfile").read_text().splitlines()
    images = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert images
    assert all(image.endswith("@${PYTHON_DIGEST}") for image in images)
    assert "ARG PYTHON_DIGEST" in lines, "without a default: nobody could know it to be the right one"
    assert "--build-arg PYTHON_DIGEST=" in (ROOT / "docs" / "scale.md").read_text()


CLICK: Final = {"name": "click", "version": "8.5.1", "vulns": []}
FLAW: Final = {"id": "PYSEC-1", "fix_versions": ["9.0"], "aliases": ["CVE-1"]}
UNKNOWN: Final = {"name": "rich", "skip_reason": "Dependency not found on PyPI and could not be audited: rich (15.0.0)"}


@pytest.mark.parametrize(
    ("packages", "expected"),
    [
        pytest.param(
            [CLICK, CLICK], Verdict(FINE, ["1 packages, and no vulnerability of them is known"]), id="nothing is known"
        ),
        pytest.param(
            [CLICK | {"vulns": [FLAW]}, UNKNOWN],
            Verdict(VULNERABLE, ["click 8.5.1: PYSEC-1, fixed in 9.0"]),
            id="a vulnerability",
        ),
        pytest.param(
            [CLICK | {"vulns": [FLAW | {"fix_versions": []}]}],
            Verdict(VULNERABLE, ["click 8.5.1: PYSEC-1, not fixed yet"]),
            id="one without a fix",
        ),
        pytest.param(
            [CLICK, UNKNOWN],
            Verdict(NOT_KNOWN, ["audit: PyPI does not know 1 of 2 packages, for example rich"]),
            id="a package that PyPI does not know is not fine",
        ),
    ],
)
def test_an_audit_ends(packages: list[dict[str, object]], expected: Verdict) -> None:
    assert judge(packages_in(json.dumps({"dependencies": packages, "fixes": []}), "")) == expected
