"""Writes what is in each package, and what it was tested with, as a CycloneDX document (PEP 770)."""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
NAME: Final = "sbom.cdx.json"
LICENCE: Final = [{"license": {"id": "MIT"}}]
# The files of requirements/, and the scope of what is in them.
PINNED: Final = {"run": "required", "alerts": "optional"}

Component = dict[str, Any]


def build_sboms(root: Path = ROOT) -> dict[Path, str]:
    """The SBOM of each package by its path. The wheel of the service also holds the JavaScript reader."""
    reader = root / "readers" / "python"
    script_folder = root / "readers" / "js"
    script = json.loads((script_folder / "package.json").read_text(encoding="utf-8"))
    project, service = _read_project(reader), _read_project(root)
    pins = {name: (root / "requirements" / f"{name}.txt").read_text(encoding="utf-8") for name in PINNED}
    pins["run"] += f"{project['name']}=={project['version']}\n"  # of the same repository
    contained = _describe_own("npm", script["name"], script["version"], "library")
    return {
        reader / NAME: describe(project, []),
        script_folder / NAME: describe({"name": script["name"], "version": script["version"]}, [], "npm"),
        root / NAME: describe(service, [contained, *list_pinned(pins)]),
    }


def list_pinned(pins: dict[str, str]) -> list[Component]:
    """What has to be there beside the service, with everything that this needs in turn: what the files of pinned
    requirements name."""
    found: dict[str, Component] = {}
    for file, text in pins.items():
        for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE):
            purl = f"pkg:pypi/{name}@{version}"
            beside = {"version": version, "isExternal": True, "scope": PINNED[file]}
            found.setdefault(name, {"type": "library", "bom-ref": purl, "name": name, **beside, "purl": purl})
    return list(found.values())


def describe(project: dict[str, Any], others: list[Component], registry: str = "pypi") -> str:
    """What a package of this table ``[project]`` is, contains, and has to have beside it."""
    kind = "application" if "scripts" in project else "library"
    package = _describe_own(registry, project["name"], project["version"], kind)
    components = sorted(others, key=lambda component: str(component["bom-ref"]))
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.7.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.7",  # the first that distinguishes what is contained from what is needed
        "version": 1,
        "metadata": {"component": package},
        "components": components,
        "dependencies": [{"ref": package["bom-ref"], "dependsOn": [component["bom-ref"] for component in components]}],
    }
    return json.dumps(document, indent=1) + "\n"


def _describe_own(registry: str, name: str, version: str, kind: str) -> Component:
    purl = f"pkg:{registry}/{name}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "licenses": LICENCE, "purl": purl}


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
