"""The texts of the page: none is missing in any language, and each has the slots and plurals that it needs."""

import re
from pathlib import Path
from typing import Final

import msgspec
import pytest

from lookout.public.page import assets
from lookout.public.page.assets import LANGUAGES, TEXTS, PageText, encode_texts, read_catalogue
from lookout_reader.statuses import STATUSES
from lookout_reader.words import NOTES
from tests.nodejs import READER

ENGLISH: Final = read_catalogue(LANGUAGES[0])
OTHERS: Final = LANGUAGES[1:]
# The forms that a whole number can take (CLDR); "other" is there for each that is not.
FORMS: Final = {
    "en": {"one"},
    "de": {"one"},
    "es": {"one", "many"},
    "zh": set(),
    "ar": {"zero", "one", "two", "few", "many"},
}
# What is the same in another language by chance, or because it is no word.
SAME: Final = re.compile(
    r"[{}\w\s.,:()%]*UTC[)]?|(\{\w+\}\W*)+|\{\w+\} (%|s|min|h|d)|Indexer|\{count\} (Peers?)|Chain.*"
)


def forms_of(text: PageText) -> dict[str, str]:
    return {"other": text} if isinstance(text, str) else text


def slots_of(text: PageText) -> set[str]:
    return {slot for form in forms_of(text).values() for slot in re.findall(r"\{(\w+)\}", form)}


@pytest.mark.parametrize("code", OTHERS)
def test_no_text_is_left_in_english_and_none_is_of_nothing(code: str) -> None:
    found = read_catalogue(code).texts
    assert found.keys() == ENGLISH.texts.keys()
    same = [
        key for key, text in found.items() if text == ENGLISH.texts[key] and not SAME.fullmatch(forms_of(text)["other"])
    ]
    assert same == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_key_stands_twice_in_a_catalogue(code: str) -> None:
    keys = re.findall(r'^    "([^"]+)":', TEXTS.joinpath(f"{code}.json").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(keys) == sorted(set(keys))


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_text_has_the_slots_of_the_english_one_and_the_plurals_of_its_language(code: str) -> None:
    for key, text in read_catalogue(code).texts.items():
        assert slots_of(text) == slots_of(ENGLISH.texts[key]), key
        assert isinstance(text, str) == isinstance(ENGLISH.texts[key], str), key
        assert "other" in forms_of(text), key
        assert forms_of(text).keys() - {"other"} <= FORMS[code], key


@pytest.mark.clause("C12")
@pytest.mark.parametrize("code", LANGUAGES)
def test_the_contracts_warnings_are_in_every_language(code: str) -> None:
    found = read_catalogue(code).texts
    warnings = [found[f"warning.{note.id}"] for note in NOTES]
    assert len(set(map(str, warnings))) == len(NOTES)
    assert all(f"status.{status.word}" in found and f"sentence.{status.word}" in found for status in STATUSES)


@pytest.mark.parametrize("code", OTHERS)
def test_a_translation_says_that_a_machine_made_it_until_somebody_has_reviewed_it(code: str) -> None:
    assert read_catalogue(code).reviewed_by == ""
    assert read_catalogue(code).texts["page.machine"]


def test_every_key_that_a_script_asks_for_is_there_and_every_text_is_asked_for() -> None:
    of_reader = (READER / "src" / name for name in ("headline.js", "short.js"))
    files = (*Path(assets.__file__).parent.glob("*.js"), *of_reader)
    scripts = "".join(path.read_text(encoding="utf-8") for path in files)
    quoted = set(re.findall(r'"([a-z][\w.-]*)"', scripts))
    asked = set(re.findall(r'\btext\(\s*"([\w.-]+)"', scripts))
    assert asked <= ENGLISH.texts.keys()
    made = re.findall(r"`([a-z]+)\.\$\{", scripts)  # such as `status.${status}`
    quoted |= set(re.findall(r'"([a-z][\w.-]*)"', Path(assets.__file__).read_text(encoding="utf-8")))  # of the badge
    unused = [key for key in ENGLISH.texts if key not in quoted and key.split(".")[0] not in made]
    assert [key for key in unused if key.removesuffix(".never") not in quoted] == []


def test_a_browser_gets_one_whole_catalogue_as_a_script() -> None:
    script = encode_texts("ar")
    assert script.startswith("export default {")
    found = msgspec.json.decode(script.removeprefix("export default ").removesuffix(";\n"))
    assert found["direction"] == "rtl"
    assert found["titles"]["ppoi"] == "Private proof of innocence"
    assert found["texts"].keys() == ENGLISH.texts.keys()
