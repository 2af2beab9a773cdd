"""Writes the JavaScript reader's single files from its modules: for the page, for CommonJS and for script tags; and of
the same modules the badge that other sites embed.

Every name at the top of a module is unique among all modules, so that they fit into one scope as they are.
"""

import re
import sys
from collections import Counter
from pathlib import Path
from typing import Final

from tools.statuses import READER

_IMPORT: Final = re.compile(r'^import \{[^}]*\} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT_FROM: Final = re.compile(r'^export (?:\{ ([^}]*) \}|\*) from "\./([\w-]+)\.js";\n', re.MULTILINE)
_DECLARATION: Final = re.compile(r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
_BEFORE_DECLARATION: Final = re.compile(r"^(?=(?:async )?(?:function|const|let|class) )", re.MULTILINE)
# On lines of their own: whoever reads the code reads the modules, and a page loads it sooner without them.
_COMMENT: Final = re.compile(r"^ *(?://.*|/\*\*(?:.|\n)*?\*/)\n", re.MULTILINE)
# A text, a comment, a pattern, spaces, a word, or any other character. A division has a space after it, a pattern none.
_TOKEN: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|//.*|/\*.*?\*/'
    r"|/(?!\s)(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n\[])+/[a-z]*|\s+|[\w$]+|."
)
_TYPE: Final = re.compile(r"^export (?:type|interface) (\w+)", re.MULTILINE)

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
        folder
        / "embed.js": f'{_WRITTEN}(() => {{"use strict";\n{squeeze(join_needed(folder / "src", "embed"))}}})();\n',
    }


def _join(folder: Path, entry: str) -> tuple[str, list[str]]:
    """The modules that this one needs and itself, as one text, and the names that this one exports."""
    texts = _read_modules(folder, entry)
    return "\n\n".join(text for text in texts.values() if text), sorted(_exports(folder, entry))


def join_needed(folder: Path, entry: str) -> str:
    """The same, of the other modules only what this one uses, directly or not."""
    *others, own = _read_modules(folder, entry).values()
    declared = [text for module in others for text in _BEFORE_DECLARATION.split(module) if text]
    by_name = {_DECLARATION.findall(text)[0]: text for text in declared}
    needed: set[str] = set()
    new = {own}
    while new:
        words = {word for text in new for word in re.findall(r"\w+", text)}
        new = {by_name[name] for name in by_name.keys() & words} - needed
        needed |= new
    return "\n".join(text.strip() for text in [*declared, own] if text in needed or text is own)


def squeeze(code: str) -> str:
    """The same without comments, and without spaces and line ends that mean nothing."""
    squeezed = ""
    for token in _TOKEN.findall(code):
        if token.startswith(("//", "/*")):
            continue
        if token.isspace():
            squeezed = squeezed.rstrip() + ("\n" if "\n" in token else " ")
        elif _is_gap_needed(squeezed[-2:], token):
            squeezed += token
        else:
            squeezed = squeezed.rstrip() + token
    return squeezed


def _is_gap_needed(before: str, token: str) -> bool:
    """Between words; and after a block, where nothing else ends it."""
    return before == "}\n" or (_is_word(before[:1]) and _is_word(token))


def _is_word(text: str) -> bool:
    return re.match(r"[\w$]", text) is not None


def _read_modules(folder: Path, entry: str) -> dict[str, str]:
    """The modules that this one needs, each after those that it needs itself, and this one as the last."""
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        text = (folder / f"{name}.js").read_text(encoding="utf-8")
        needed = [*_IMPORT.findall(text), *(source for _, source in _EXPORT_FROM.findall(text))]
        for each in needed:
            if each not in texts:
                add(each)
        without = _COMMENT.sub("", _EXPORT_FROM.sub("", _IMPORT.sub("", text)))
        texts[name] = re.sub(r"^export (?=async|function|const|let|class)", "", without, flags=re.MULTILINE).strip()

    add(entry)
    names = Counter(name for text in texts.values() for name in _DECLARATION.findall(text))
    twins = [name for name, times in names.items() if times > 1]
    if twins:
        raise ValueError(f"these names are declared in more than one module: {', '.join(twins)}")
    return texts


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
    for path, content in make_bundles().items():
        path.write_text(content, encoding="utf-8", newline="\n")
        print(f"wrote {path.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
