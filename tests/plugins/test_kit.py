"""What the conformance kit finds wrong with a protocol, and in which words."""

from pathlib import Path
from typing import Final

import pytest

from lookout.protocols.api import Blocks
from lookout.protocols.conformance import assert_conforms
from tests.plugins.packages import GOOD, install, with_parse, with_request

SETTINGS: Final = {"url": "https://tidal.example", "chain": 1}
ANSWER: Final = b'{"block":17}'


def complaint_about(code: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: object) -> str:
    """The module has a name of its own, since this process imports it, too."""
    place = install(folder, code, distribution=folder.name.replace("_", "-"))
    monkeypatch.syspath_prepend(folder)
    try:
        assert_conforms(place, {**SETTINGS, **settings}, good={ANSWER: Blocks(17)})
    except AssertionError as error:
        return str(error)
    return ""


def test_a_good_one_conforms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complaint_about(GOOD, tmp_path, monkeypatch) == ""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param("PROTOCOL = 3", "- it has a int and no Protocol at", id="no protocol"),
        pytest.param(with_request("return Request('GET', settings.url)"), "leaves out the headers", id="no headers"),
        pytest.param(with_request("return settings.url"), "for its request the plug-in raised", id="no request"),
        pytest.param(with_parse("return Blocks(3)"), "it found Blocks(position=3) and not", id="wrong"),
        pytest.param(with_parse("raise KeyError"), "the plug-in raised KeyError", id="any error"),
        pytest.param(with_parse("raise SystemExit"), "the plug-in raised SystemExit", id="it ends the program"),
        pytest.param(
            with_parse("return Blocks(-1)"),
            "the plug-in gave a Blocks with something else in it than it declares",
            id="out of range",
        ),
        pytest.param(
            with_parse(
                "from lookout.protocols.api import ProbeFailed",
                "raise ProbeFailed('not_understood', settings.url[:80])",
            ),
            "the plug-in gave a reason that is not a known cause with a short detail in its own words",
            id="an address",
        ),
        pytest.param(
            with_parse(
                "kept = globals().setdefault('kept', [])", "kept.append(0)", "return Blocks(16 + min(len(kept), 2))"
            ),
            "it found Blocks(position=18) and not Blocks(position=17)",
            id="not the same each time",
        ),
    ],
)
def test_what_is_wrong_is_said(code: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said in complaint_about(code, tmp_path, monkeypatch)


def test_settings_that_it_refuses_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = complaint_about(GOOD, tmp_path, monkeypatch, chain=-1)
    assert "its settings refuse those that were given: Expected `int` >= 1" in said
