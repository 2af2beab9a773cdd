"""What a person or a program gets of the measurements, whatever becomes of one of them."""

import json
import os
from collections.abc import Iterator

import pytest

from bench.__main__ import main
from bench.figures import Figure
from bench.processes import children, cpu_by_process
from bench.runner import Broken, Measured, run_parts
from bench.table import WIDTH, lines

LONG = Figure(
    "10,000 readers of 50 origins: what reaches the server behind its edge",
    "1,234 requests a minute with 12% of a core, 99% of them 304",
    "prometheus-blackbox-exporter 0.123 ms, and_a_word_that_is_longer_than_any_column_of_the_table",
    12345.678,
    "within 100 ms and at least 0.57 of nginx",
    True,
)


def good() -> Iterator[Figure]:
    yield Figure("live 200", "58,000/s", "nginx 95,000/s", 0.61, "at least 0.57")
    yield Figure("memory", "70 MB")


def late() -> Iterator[Figure]:
    yield Figure("history 200", "9,000/s", "nginx 30,000/s", 0.3, "at least 0.45", missed=True)


def breaks_halfway() -> Iterator[Figure]:
    yield Figure("first", "1 ms")
    raise ProcessLookupError(3, "No such\nprocess")


def interrupted() -> Iterator[Figure]:
    yield Figure("first", "1 ms")
    raise KeyboardInterrupt


def test_a_part_that_breaks_keeps_what_it_found_and_costs_the_others_nothing() -> None:
    first, broken, *others = run_parts({"a": breaks_halfway, "b": good})
    assert first == Measured("a", Figure("first", "1 ms"))
    assert isinstance(broken, Broken)
    assert broken.part == "a"
    assert broken.reason.startswith("ProcessLookupError: [Errno 3] No such process (breaks_halfway, test_runner.py:")
    assert [result.part for result in others] == ["b", "b"]


def test_who_interrupts_is_obeyed() -> None:
    results = run_parts({"a": interrupted, "b": good})
    next(results)
    with pytest.raises(KeyboardInterrupt):
        next(results)


def test_each_figure_is_printed_before_the_next_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    printed: list[str] = []

    def looks() -> Iterator[Figure]:
        yield Figure("the first one", "1 ms")
        printed.append(capsys.readouterr().out)
        yield Figure("the second one", "2 ms")

    assert main([], {"a": looks}) == 0
    assert "the first one" in printed[0]
    assert "the second one" not in printed[0]


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


def test_named_parts_are_measured_and_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["b", "--json"], {"a": breaks_halfway, "b": good}) == 0
    assert {figure["part"] for figure in json.loads(capsys.readouterr().out)["figures"]} == {"b"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param(["serving"], 2, "choose from replay, publish", id="an unknown part"),
        pytest.param(["--jsn"], 2, "unrecognized arguments", id="an unknown option"),
        pytest.param(["--help"], 0, "parts: replay, publish", id="help names the parts"),
    ],
)
def test_wrong_use_is_said_before_anything_is_measured(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code
    written = capsys.readouterr()
    assert said in " ".join((written.out + written.err).split())


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(Measured("crowd", LONG), id="a figure whose every cell is too long"),
        pytest.param(Broken("fleet", "OSError: " + "x" * 200 + " and " + "more words " * 20), id="a long reason"),
        *(pytest.param(Measured("a", figure), id=figure.measured) for figure in good()),
    ],
)
def test_no_line_is_wider_than_a_terminal(result: Measured | Broken) -> None:
    assert max(map(len, lines(result))) <= WIDTH == 80


def test_nothing_of_a_figure_is_cut_off() -> None:
    shown = [line.ljust(WIDTH) for line in lines(Measured("a", LONG))]
    measured, figure = (
        "".join("".join(line[begin:end] for line in shown).split()) for begin, end in ((0, 29), (30, 54))
    )
    assert measured == "".join(LONG.measured.split())
    assert figure == "".join(f"{LONG.figure};{LONG.against}".split())


def test_a_process_that_has_ended_while_it_is_looked_at_is_left_out() -> None:
    ended = os.fork()
    if not ended:
        os._exit(0)
    os.waitpid(ended, 0)
    assert children(ended) == []
    assert cpu_by_process((os.getpid(), ended)).keys() == {os.getpid()}
