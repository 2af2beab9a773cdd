"""Writes what is in each Python package, and what it needs, as a CycloneDX document (PEP 770)."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT: Final = Path(__file__).parent.parent
NAME: Final = "sbom.cdx.json"
LICENCE: Final = [{"license": {"id": "MIT"}}]

Component = dict[str, Any]


def build_sboms(root: Path = ROOT) -> dict[Path, str]:
    """The SBOM of each package by its path. The wheel of the service also holds the JavaScript reader."""
    reader = root / "readers" / "python"
    script_folder = root / "readers" / "js"
    script = json.loads((script_folder / "package.json").read_text(encoding="utf-8"))
    return {
        reader / NAME: describe(_read_project(reader), []),
        script_folder / NAME: describe({"name": script["name"], "version": script["version"]}, [], "npm"),
        root / NAME: describe(
            _read_project(root), [_describe_own("npm", script["name"], script["version"], "library")]
        ),
    }


def describe(project: dict[str, Any], contained: list[Component], registry: str = "pypi") -> str:
    """What a package of this table ``[project]`` contains, and what has to be there beside it."""
    kind = "application" if "scripts" in project else "library"
    package = _describe_own(registry, project["name"], project["version"], kind)
    extras = project.get("optional-dependencies", {})
    needed = [_describe_needed(requirement, "required") for requirement in project.get("dependencies", [])]
    needed += [_describe_needed(requirement, "optional") for extra in extras.values() for requirement in extra]
    components = sorted([*contained, *needed], key=lambda component: str(component["bom-ref"]))
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",  # the first that distinguishes what is contained from what is needed
        "version": 1,
        "metadata": {"component": package},
        "components": components,
        "dependencies": [{"ref": package["bom-ref"], "dependsOn": [each["bom-ref"] for each in components]}],
    }
    return json.dumps(document, indent=1) + "\n"


def _describe_own(registry: str, name: str, version: str, kind: str) -> Component:
    purl = f"pkg:{registry}/{name}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "licenses": LICENCE, "purl": purl}


def _describe_needed(requirement: str, scope: str) -> Component:
    wanted = Requirement(requirement)
    purl = f"pkg:pypi/{canonicalize_name(wanted.name)}"
    bounds = sorted(wanted.specifier, key=lambda each: Version(each.version))
    versions = "|".join(f"{each.operator.replace('==', '')}{each.version}" for each in bounds)
    beside = {"versionRange": f"vers:pypi/{versions}", "isExternal": True, "scope": scope}
    return {"type": "library", "bom-ref": purl, "name": wanted.name, **beside, "purl": purl}


def _read_project(folder: Path) -> dict[str, Any]:
    settings = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    source = (folder / settings["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    return {**settings["project"], "version": version}


def main() -> None:
    for path, text in build_sboms().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {os.path.relpath(path)}")


if __name__ == "__main__":
    main()
