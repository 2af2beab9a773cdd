"""Whatever an indexer answers in turn, what is held against its list is what S20's sentences say."""

from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookout.core.model import ListEntry
from lookout.features.lists.rules.links import Links, Read, make_hash, take_answer
from tests.builders import NOON
from tests.oracles.links import Suspect, follow

Form = Literal["fits", "wrong", "no hash", "no value"]
_IDS: Final = st.integers(0, 14).map("{:03d}".format)
_FORMS: Final = st.sampled_from(("fits", "fits", "fits", "fits", "wrong", "wrong", "no hash", "no value"))
# The entries of an answer by their ids, whether it begins with the list's first, and how long after the last one.
_ANSWERS: Final = st.lists(
    st.tuples(st.dictionaries(_IDS, _FORMS), st.booleans(), st.sampled_from((1_000, 30_000, 60_000))), max_size=8
)


def entries_of(forms: dict[str, Form]) -> list[ListEntry]:
    made, last = [], f"0x{0:064x}"
    for entry_id, form in sorted(forms.items()):
        value = f"0x{int(entry_id):064x}"
        last = f"0x{int(entry_id) + 1:064x}" if form == "wrong" else make_hash(last, value)
        made.append(ListEntry(entry_id, 0, None if form == "no value" else value, None if form == "no hash" else last))
    return made


@pytest.mark.clause("S20")
@given(answers=_ANSWERS)
def test_breaks_are_suspected_confirmed_and_ended_as_the_contract_says(
    answers: list[tuple[dict[str, Form], bool, int]],
) -> None:
    links, expected, at = Links(subject="a", has_held=True), list[Suspect](), NOON
    for forms, is_whole, after_ms in answers:
        at += after_ms
        answer = entries_of(forms)
        links = take_answer(links, Read("sweep", "" if is_whole else "000"), answer, at, 0)
        expected = follow(expected, answer, at, is_whole=is_whole)
        found = [Suspect(each.first.id, each.second.id, each.seen_at, each.is_confirmed) for each in links.breaks]
        assert sorted(found) == expected
        assert all(each.from_id <= each.first.id for each in links.breaks)
