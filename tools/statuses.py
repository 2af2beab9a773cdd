"""Writes the statuses and words of the Python reader into the JavaScript reader."""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from lookout_reader.statuses import (
    BY_WORD,
    CHARACTERS,
    EFFECTIVE_STATUSES,
    KNOWN_CHARACTERS,
    KNOWN_STATUSES,
    NO_DATA,
    TROUBLE_CHARACTERS,
    TROUBLE_STATUSES,
)
from lookout_reader.words import NOTES, OVERVIEW_TEXTS, REASON_TEXTS

READER: Final = Path(__file__).parent.parent / "readers" / "js"
BEGIN: Final = "// ---- Written by `make schemas`, from readers/python/src/lookout_reader/statuses.py and words.py\n"
END: Final = "// ---- Until here\n"
_UNION_MOST: Final = 90


def fill_in() -> dict[Path, str]:
    """The files of the reader that hold the table and its sentences, or have its words between marks."""
    types = READER / "src" / "page.d.ts"
    return {
        READER / "src" / "statuses.js": _statuses(),
        READER / "src" / "sentences.js": _sentences(),
        types: _replace(types, _types()),
    }


def _replace(path: Path, part: str) -> str:
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} lacks one of the marks {BEGIN.strip()!r} and {END.strip()!r}")
    return f"{before}{BEGIN}{part}{END}{after}"


def _statuses() -> str:
    characters = "".join(BY_WORD[word].character or " " for word in EFFECTIVE_STATUSES)
    return f"""\
{BEGIN}
/** What a row can come to, from worst to best; unmonitored is neither (see rollUp). */
export const EFFECTIVE_STATUSES = /* @__PURE__ */ Object.freeze([
{_lines(map(_js, EFFECTIVE_STATUSES))}
]);
/** Those that are a reading of the service, from worst to best: what uptime counts. */
export const KNOWN_STATUSES = /* @__PURE__ */ Object.freeze({_js(KNOWN_STATUSES)});
/** The characters of the history, in the order of EFFECTIVE_STATUSES; a status that it does not have is a space. */
export const CHARACTERS = {_js(characters)};
export const CURRENT_CHARACTER = {_js(BY_WORD["current"].character)};
export const KNOWN_CHARACTERS = {_js(KNOWN_CHARACTERS)};
export const TROUBLE = /[{_escape(TROUBLE_CHARACTERS)}]+/g;
// With u, a character is one however encoded.
export const UNKNOWN_CHARACTER = /[^{_escape("".join(CHARACTERS.values()))}]/gu;
"""


def _sentences() -> str:
    names = {word: BY_WORD[word].name for word in EFFECTIVE_STATUSES}
    texts = {word: BY_WORD[word].sentence for word in EFFECTIVE_STATUSES}
    notes = _lines((f"[{_js(note.id)}, {_js(note.services)},\n      {_js(note.text)}]" for note in NOTES), indent=4)
    return f"""\
{BEGIN}
/** What people read everywhere. */
export const STATUS_NAMES = {{
{_lines(f"{_js(status)}: {_js(name)}" for status, name in names.items())}
}};

export const STATUS_TEXTS = {{
{_lines(f"{_js(status)}: {_js(text)}" for status, text in texts.items())}
}};

export const REASON_TEXTS = {{
{_lines(f"{_js(reason)}: {_js(text)}" for reason, text in REASON_TEXTS.items())}
}};

/** What is said of an overview (headlineOf); one with plurals is chosen by `count`. */
export const OVERVIEW_TEXTS = {{
{_lines(f"{_js(key)}: {_js(text)}" for key, text in OVERVIEW_TEXTS.items())}
}};

/** What to show people beside the data (C12); `services` are those it is about, null for all. */
export const NOTES = /* @__PURE__ */ Object.freeze(
  /* @__PURE__ */ [
{notes}
  ].map(([id, services, text]) => Object.freeze({{ id, services: services && Object.freeze(services), text }})),
);
"""


def _types() -> str:
    return f"""\
/** What a row can come to. */
export type EffectiveStatus ={_union(EFFECTIVE_STATUSES)};
/** Those of an incident. */
export type TroubleStatus ={_union(TROUBLE_STATUSES)};
export type BucketCharacter ={_union((*CHARACTERS.values(), NO_DATA))};
export type NoteId ={_union(note.id for note in NOTES)};
"""


def _lines(entries: Iterable[str], indent: int = 2) -> str:
    return "\n".join(f"{' ' * indent}{entry}," for entry in entries)


def _union(words: Iterable[str]) -> str:
    """As biome writes it: on one line if the shortest name leaves room for that."""
    listed = list(map(_js, words))
    line = f" {' | '.join(listed)}"
    return line if len(line) < _UNION_MOST else "".join(f"\n  | {word}" for word in listed)


def _escape(characters: str) -> str:
    """As a class of a regular expression has them."""
    return re.sub(r"[\\\]\[^/-]", r"\\\g<0>", characters)


def _js(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def main() -> int:
    for path, content in fill_in().items():
        path.write_text(content, encoding="utf-8", newline="\n")
        print(f"wrote {path.relative_to(Path.cwd())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
