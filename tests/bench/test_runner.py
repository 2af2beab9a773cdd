"""What a person or a program gets of the measurements, whatever becomes of one of them."""

import json
from collections.abc import Iterator

import pytest

from bench.__main__ import main
from bench.figures import Figure
from bench.runner import Broken, Measured, run_parts


def good() -> Iterator[Figure]:
    yield Figure("live 200", "58,000/s", "nginx 95,000/s", 0.61, "at least 0.57")
    yield Figure("memory", "70 MB")


def late() -> Iterator[Figure]:
    yield Figure("history 200", "9,000/s", "nginx 30,000/s", 0.3, "at least 0.45", missed=True)


def breaks_halfway() -> Iterator[Figure]:
    yield Figure("first", "1 ms")
    raise ProcessLookupError(3, "No such\nprocess")


def test_a_part_that_breaks_keeps_what_it_found_and_costs_the_others_nothing() -> None:
    first, broken, *others = run_parts({"a": breaks_halfway, "b": good})
    assert first == Measured("a", Figure("first", "1 ms"))
    assert isinstance(broken, Broken)
    assert broken.part == "a"
    assert broken.reason.startswith("ProcessLookupError: [Errno 3] No such process (breaks_halfway, test_runner.py:")
    assert [result.part for result in others] == ["b", "b"]


@pytest.mark.parametrize(
    ("parts", "code", "last"),
    [
        pytest.param({"a": good}, 0, "1 of 1 targets met", id="all targets met"),
        pytest.param({"a": good, "b": late}, 1, "1 of 2 targets met", id="one missed"),
        pytest.param(
            {"a": breaks_halfway, "b": good}, 1, "1 of 1 targets met; broken: a", id="all met, but a part broke"
        ),
    ],
)
def test_the_end_says_how_it_went(
    parts: dict[str, object], code: int, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], parts) == code  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_as_json_the_figures_alone_are_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"], {"a": good, "b": late, "c": breaks_halfway}) == 1
    written = capsys.readouterr()
    found = json.loads(written.out)
    assert [(figure["part"], figure["met"]) for figure in found["figures"]] == [
        ("a", True),
        ("a", None),
        ("b", False),
        ("c", None),
    ]
    assert found["figures"][0]["ratio"] == 0.61
    assert [part["part"] for part in found["broken"]] == ["c"]
    assert "live 200" in written.err
