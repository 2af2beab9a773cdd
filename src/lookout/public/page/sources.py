"""What browsers load of the sources: several modules in one file, without comments and indentation."""

import re
from collections import Counter
from collections.abc import Callable
from typing import Final

_IMPORT: Final = re.compile(r'^import \{ ([^}]*) \} from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT_FROM: Final = re.compile(r'^export (?:\{ [^}]* \}|\*) from "\./([\w-]+)\.js";\n', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?:\{[^}]*\};\n|(?=async|function|const|let|class))", re.MULTILINE)
_DECLARATION: Final = re.compile(r"^(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)
_TOP: Final = re.compile(r"^(?=[^\s})\]])", re.MULTILINE)  # where something at the top of a module begins
# Only what stands on lines of its own: in a string or a pattern there may be anything else.
_COMMENT: Final = re.compile(r"^[ \t]*(?:/\*.*?\*/[ \t]*|//[^\n]*)\n", re.DOTALL | re.MULTILINE)
_INDENTATION: Final = re.compile(r"^\s+", re.MULTILINE)
# A text (in one with slots there may be another), a comment, a pattern, spaces, a word, or any other character.
# A division has a space after it, and a pattern has none.
_PIECE: Final = re.compile(
    r'"(?:\\.|[^"\\\n])*"'
    r"|`(?:\\.|\$\{(?:[^`{}]|`(?:\\.|[^`\\])*`|\{[^`{}]*\})*\}|\$(?!\{)|[^`\\$])*`"
    r"|//.*|/\*(?:.|\n)*?\*/"
    r"|/(?!\s)(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n\[])+/[a-z]*|\s+|[\w$]+|."
)


def strip_comments(source: str) -> str:
    return _COMMENT.sub("", source)


def strip_source(source: str) -> str:
    """A script or stylesheet without both; a text of several lines in it would not survive that."""
    return _INDENTATION.sub("", strip_comments(source))


def squeeze_script(code: str) -> str:
    """A script without comments, and without spaces and line ends that mean nothing: every statement in it ends with a
    semicolon or a block."""
    parts = [""]
    gap = ""
    for piece in _PIECE.findall(code):
        if piece in "\"'`":
            raise ValueError(f"a text that is not understood, after: {''.join(parts[-9:])}")
        if piece.isspace() or piece.startswith(("//", "/*")):
            gap = "\n" if "\n" in gap + piece else " "
            continue
        parts.append(gap + piece if _is_gap_needed(parts[-1][-1:], gap, piece) else piece)
        gap = ""
    return "".join(parts)


def _is_gap_needed(before: str, gap: str, piece: str) -> bool:
    """Between words; between signs that together would be another; and after a block, where nothing else ends it."""
    return re.match(r"[\w$/]\s[\w$/]|([-+])\s\1|}\n", before + gap + piece) is not None


def join_modules(read: Callable[[str], str], entry: str, apart: str | None = None) -> str:
    """The module of this name and those that it needs, each after those that it needs itself, as one that exports
    nothing; ``apart`` stays a file of its own. Every name at the top of a module has to be unique among all."""
    texts: dict[str, str] = {}
    taken: set[str] = set()  # of the module that stays apart

    def add(name: str) -> None:
        text = read(name)
        imports = [(source, names.split(", ")) for names, source in _IMPORT.findall(text)]
        for source in [*(source for source, _ in imports), *_EXPORT_FROM.findall(text)]:
            if source not in texts and source != apart:
                add(source)
        taken.update(each for source, names in imports if source == apart for each in names)
        texts[name] = _EXPORT.sub("", _EXPORT_FROM.sub("", _IMPORT.sub("", strip_comments(text)))).strip()

    add(entry)
    code = "\n\n".join(text for text in texts.values() if text)
    twins = [name for name, times in Counter(_DECLARATION.findall(code)).items() if times > 1]
    if twins:
        raise ValueError(f"these names are declared in more than one module: {', '.join(twins)}")
    return f'import {{ {", ".join(sorted(taken))} }} from "./{apart}.js";\n{code}' if taken else code


def drop_unused(code: str) -> str:
    """Without the declarations at the top that nothing needs. To be named anywhere in what is needed is enough."""
    parts = [(_DECLARATION.match(part), part) for part in _TOP.split(code)]
    declared = {match[1]: part for match, part in parts if match}
    needed = {part for match, part in parts if not match}
    found = needed
    while found := {declared[name] for part in found for name in re.findall(r"\w+", part) if name in declared} - needed:
        needed |= found
    return "".join(part for _, part in parts if part in needed)
