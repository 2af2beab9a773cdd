"""A status is declared once: what shows it anywhere is derived from its row."""

from typing import get_args

from lookout_reader.statuses import (
    CHARACTERS,
    NO_DATA,
    STATUSES,
    TROUBLE_STATUSES,
    EffectiveStatus,
    PublishedStatus,
    TroubleStatus,
)
from lookout_reader.words import REASON_TEXTS, Reason
from tools.states import build_files
from tools.statuses import fill_in


def test_the_types_name_what_the_tables_hold() -> None:
    assert list(get_args(EffectiveStatus)) == [status.word for status in STATUSES]
    assert list(get_args(PublishedStatus)) == list(CHARACTERS)
    assert set(get_args(TroubleStatus)) == set(TROUBLE_STATUSES)
    assert list(get_args(Reason)) == list(REASON_TEXTS)
    assert len({*CHARACTERS.values(), NO_DATA}) == len(CHARACTERS) + 1
    assert len({status.severity for status in STATUSES}) == len(STATUSES)


def test_the_javascript_reader_has_the_statuses_of_the_python_one() -> None:
    for path, content in (*fill_in().items(), *build_files().items()):
        assert path.read_text(encoding="utf-8") == content, "run: make schemas"
