"""Writes the JavaScript reader's single files from its modules: for the page, for CommonJS and for script tags; and of
the same modules the badge that other sites embed.

Every name at the top of a module is unique among all modules, so that they fit into one scope as they are.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lookout.public.page import embed
from lookout.public.page.sources import drop_unused, join_modules, squeeze_script
from tools.statuses import READER

_EXPORT_FROM: Final = re.compile(r'^export (?:\{ ([^}]*) \}|\*) from "\./([\w-]+)\.js";\n', re.MULTILINE)
_TYPE: Final = re.compile(r"^export (?:type|interface) (\w+)", re.MULTILINE)

BADGE: Final = Path(embed.__file__).parent / "embed.js"
_WRITTEN: Final = "// Written by `make schemas`, from src/.\n"
_SCRIPT: Final = """\
(function (root, make) {
  if (typeof module === "object" && module.exports) module.exports = make();
  else root.lookoutReader = make();
})(typeof self === "object" ? self : this, function () {
"use strict";
"""


def make_bundles(folder: Path = READER) -> dict[Path, str]:
    """The built files of the reader in this folder."""
    types = (folder / "lookout-reader.d.ts").read_text(encoding="utf-8")
    code, names = _join(folder / "src", "page")
    return {
        folder / "lookout-reader.js": f"{_WRITTEN}{code}\nexport {{\n{_list(names)}}};\n",
        folder / "index.d.ts": _wallet_types(folder, types, "lookout-reader"),
        folder / "commonjs" / "index.js": _script(*_join(folder / "src", "index")),
        folder / "commonjs" / "index.d.ts": _wallet_types(folder, types, "page"),
        folder / "commonjs" / "page.js": _script(code, names),
        folder / "commonjs" / "page.d.ts": types,
    }


def make_badge(folder: Path = READER) -> str:
    """The script that a server fills in and sends to other sites, which is no part of the package."""
    code = drop_unused(join_modules(_reading(folder / "src"), "embed"))
    return f'{_WRITTEN}(() => {{"use strict";{squeeze_script(code)}}})();\n'


def _join(folder: Path, entry: str) -> tuple[str, list[str]]:
    """The modules that this one needs as one, and the names that this one exports."""
    return join_modules(_reading(folder), entry), sorted(_exports(folder, entry))


def _reading(folder: Path) -> Callable[[str], str]:
    return lambda name: (folder / f"{name}.js").read_text(encoding="utf-8")


def _exports(folder: Path, entry: str) -> set[str]:
    names: set[str] = set()
    for listed, source in _EXPORT_FROM.findall((folder / f"{entry}.js").read_text(encoding="utf-8")):
        names |= set(listed.split(", ")) if listed else _exports(folder, source)
    return names


def _script(code: str, names: list[str]) -> str:
    return f"{_WRITTEN}{_SCRIPT}{code}\n\nreturn {{\n{_list(names)}}};\n}});\n"


def _list(names: list[str]) -> str:
    return "".join(f"  {name},\n" for name in names)


def _wallet_types(folder: Path, types: str, source: str) -> str:
    """What index.js exports, of the types of everything."""
    names = sorted(_exports(folder / "src", "index"))
    return (
        f"{_WRITTEN}"
        f'export {{\n{_list(names)}}} from "./{source}.js";\n'
        f'export type {{\n{_list(_TYPE.findall(types))}}} from "./{source}.js";\n'
    )


def main() -> int:
    for path, content in (make_bundles() | {BADGE: make_badge()}).items():
        path.write_text(content, encoding="utf-8", newline="\n")
        print(f"wrote {path.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
