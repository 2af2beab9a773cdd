"""The observation log's lines."""

import pytest

from lookout.core.heads import Reading
from lookout.core.model import (
    Blocks,
    Check,
    Failed,
    Gaps,
    Indexes,
    Members,
    MissingList,
    Nothing,
    Observation,
    Peers,
    Responding,
)
from lookout.state.log import (
    Compared,
    Event,
    HeadRead,
    LineError,
    NotJsonError,
    Started,
    Stopped,
    format_event,
    parse_line,
)
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, NOON, PPOI
from tests.cases import cases

AT = '"at":"2026-11-05T12:00:00.000Z"'


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('"kind":"start"', Started(NOON)),
        ('"kind":"start","stepMs":570000', Started(NOON, 570_000)),
        ('"kind":"stop"', Stopped(NOON)),
        (
            '"kind":"head","chainId":1,"height":21900000,"blockAt":"2026-11-05T11:59:58.000Z"',
            HeadRead(NOON, 1, Reading(NOON, 21_900_000, NOON - 2000)),
        ),
        (
            '"kind":"head","chainId":1,"height":7,"blockAt":"2026-11-05T11:59:58.000Z","readAt":"2026-11-05T11:59:59.000Z"',
            HeadRead(NOON, 1, Reading(NOON - 1000, 7, NOON - 2000)),
        ),
        (
            '"kind":"probe","service":"indexer","chainId":1,"outcome":"answered","position":21899990',
            Observation(INDEXER, NOON, Blocks(21_899_990)),
        ),
        (
            '"kind":"probe","service":"hosted-indexer","chainId":56,"outcome":"answered","position":0',
            Observation(Check("hosted-indexer", 56), NOON, Blocks(0)),
        ),
        (
            '"kind":"probe","service":"ppoi","chainId":1,"outcome":"answered","position":41,"head":42',
            Observation(PPOI, NOON, Indexes(41, 42)),
        ),
        (
            '"kind":"probe","service":"ppoi","chainId":1,"outcome":"missing-list"',
            Observation(PPOI, NOON, MissingList()),
        ),
        (
            '"kind":"probe","service":"broadcasters","chainId":1,"outcome":"answered","responding":3,"monitored":5',
            Observation(BROADCASTERS, NOON, Members(3, 5)),
        ),
        (
            '"kind":"probe","service":"messaging","chainId":null,"outcome":"answered","peers":8',
            Observation(MESSAGING, NOON, Peers(8)),
        ),
        (
            '"kind":"probe","service":"indexer","chainId":1,"outcome":"failed","error":"timeout"',
            Observation(INDEXER, NOON, Failed("timeout")),
        ),
        (
            '"kind":"probe","service":"indexer","chainId":1,"outcome":"nothing"',
            Observation(INDEXER, NOON, Nothing()),
        ),
        (
            '"kind":"coverage","service":"indexer","chainId":1,"missing":2,"extra":0',
            Compared(NOON, INDEXER, Gaps(missing=2)),
        ),
        (
            '"kind":"coverage","service":"indexer","chainId":1,"missing":0,"extra":1,"breaks":3',
            Compared(NOON, INDEXER, Gaps(extra=1, breaks=3)),
        ),
        ('"kind":"agreement","chainId":1,"gap":4', Compared(NOON, PPOI, Gaps(gap=4))),
        *(
            pytest.param(
                f'"kind":"probe","service":"oracle","chainId":{chain},"outcome":{outcome}',
                Observation(Check("oracle", None if chain == "null" else int(chain)), NOON, found),
                id=f"of a service of the operator's own: {outcome}",
            )
            for chain, outcome, found in (
                ("1", '"answered"', Responding()),
                ("null", '"answered","position":7', Blocks(7)),
                ("1", '"answered","position":7,"head":8', Indexes(7, 8)),
                ("1", '"answered","responding":7,"monitored":8', Members(7, 8)),
                ("1", '"answered","peers":7', Peers(7)),
                ("1", '"missing-list"', MissingList()),
                ("1", '"failed","error":"timeout"', Failed("timeout")),
            )
        ),
    ],
)
def test_each_kind_of_line_is_read_and_written(line: str, event: Event) -> None:
    text = f"{{{AT},{line}}}\n".encode()
    assert parse_line(text) == event
    assert format_event(event) == text


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(f'{{"kind":"stop",{AT}}}', id="in another order"),
        pytest.param(f'{{{AT},"kind":"stop","note":[1.5,{{}}],"position":-1,"error":null}}', id="with other fields"),
        pytest.param(f' {{ {AT} ,\t"kind" : "stop" }} \r\n', id="with blanks"),
        pytest.param(f'{{{AT},"kind":"stop","née":"\u00e9"}}', id="in UTF-8"),
    ],
)
def test_what_the_format_does_not_name_is_ignored(line: str) -> None:
    assert parse_line(line.encode()) == Stopped(NOON)


HEAD = f'{{{AT},"kind":"head","chainId":1,"height":1'


@pytest.mark.clause("R10")
@pytest.mark.parametrize(("line", "reason"), cases("log", "a wrong line is refused with the reason"))
def test_a_wrong_line_is_refused_with_the_reason(line: str, reason: str) -> None:
    with pytest.raises(LineError) as caught:
        parse_line(line.encode())
    assert str(caught.value).startswith(reason)
    assert not isinstance(caught.value, NotJsonError)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "not JSON: Input data was truncated"),
        (b"\n", "not JSON: Input data was truncated"),
        (b'{"at":"2026', "not JSON: Input data was truncated"),
        (b'{"at":"x","kind":"stop"} {}', "not JSON: JSON is malformed: trailing characters (byte 26)"),
        (b'{"at":NaN}', "not JSON: JSON is malformed: invalid character (byte 6)"),
        (
            b'{"at":"\xff","kind":"stop"}',
            "not JSON: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        ),
    ],
)
def test_what_is_not_json_is_told_apart(line: bytes, reason: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        parse_line(line)
    assert str(caught.value) == reason


@pytest.mark.parametrize("depth", [900, 986, 1_000, 50_000])
@pytest.mark.parametrize("end", ["]", ""])
def test_deep_nesting_is_refused(depth: int, end: str) -> None:
    deep = f'{{{AT},"kind":{"[" * depth}{end * depth}}}'
    with pytest.raises(LineError):
        parse_line(deep.encode())


def test_an_error_that_is_no_text_is_written_as_well_as_it_can_be() -> None:
    written = format_event(Observation(INDEXER, NOON, Failed("no file \udcff")))
    assert parse_line(written) == Observation(INDEXER, NOON, Failed("no file ?"))
