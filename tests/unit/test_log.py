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
    Metrics,
    MissingList,
    Nothing,
    Observation,
    Peers,
    Responding,
    Row,
    unmonitored,
)
from lookout.state.log import (
    Compared,
    Event,
    HeadRead,
    LineError,
    NotJsonError,
    Started,
    Stopped,
    Viewed,
    format_event,
    parse_line,
)
from tests.builders import BROADCASTERS, INDEXER, MESSAGING, NOON, PPOI

AT = '"at":"2026-11-05T12:00:00.000Z"'


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('"kind":"start"', Started(NOON)),
        ('"kind":"start","stepMs":570000', Started(NOON, 570_000)),
        ('"kind":"stop"', Stopped(NOON)),
        (
            (
                '"kind":"view","witness":"São Paulo","service":"ppoi","chainId":1,"status":"current","reason":"synced",'
                '"observedAt":"2026-11-05T12:00:00.000Z","lastSuccessAt":"2026-11-05T12:00:00.000Z",'
                '"expiresAt":"2026-11-05T12:02:30.000Z","metrics":{"position":184213,"head":184213}'
            ),
            Viewed(
                NOON,
                "São Paulo",
                Row(PPOI, "current", "synced", NOON, NOON, NOON + 150_000, Metrics(position=184_213, head=184_213)),
            ),
        ),
        (
            (
                '"kind":"view","witness":"Singapore","service":"messaging","chainId":null,"status":"unmonitored",'
                '"reason":"not-configured","observedAt":null,"lastSuccessAt":null,"expiresAt":null,"metrics":{}'
            ),
            Viewed(NOON, "Singapore", unmonitored(MESSAGING)),
        ),
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


PROBE = f'{{{AT},"kind":"probe","outcome":'
ANSWERED = PROBE + '"answered","chainId":1,"service":"indexer"'
OF_PPOI = PROBE + '"nothing","service":"ppoi"'
HEAD = f'{{{AT},"kind":"head","chainId":1,"height":1'
COVERAGE = f'{{{AT},"kind":"coverage","service":'
VIEW = (
    f'{{{AT},"kind":"view","witness":"Singapore","service":"ppoi","chainId":1,"observedAt":null,"lastSuccessAt":null,'
    '"metrics":{}'
)
WHOLE = "not a line of the log: Expected `int` >= 0 - at `$."
INSTANT = "an instant like 2026-11-01T00:00:00.000Z"


@pytest.mark.clause("R10")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[]", "not a line of the log: Expected `object`, got `array`"),
        ("{}", "not a line of the log: Object missing required field `kind`"),
        ('{"at":5,"kind":"stop"}', "not a line of the log: Expected `str`, got `int` - at `$.at`"),
        ('{"at":"yesterday","kind":"stop"}', f"at: 'yesterday' is not {INSTANT}"),
        (f'{{{AT},"kind":"crash"}}', "not a line of the log: Invalid value 'crash' - at `$.kind`"),
        (PROBE + '"nothing","service":"Oracle","chainId":1}', "service is 'Oracle'; it has to be a name of [a-z]"),
        (PROBE + '"answered","service":"oracle","chainId":1,"head":7}', "an answer of this service has position and"),
        (PROBE + '"answered","service":"oracle","chainId":1,"monitored":7}', "an answer of this service has respond"),
        (COVERAGE + '"ppoi","chainId":1,"missing":1,"extra":0}', "coverage is of indexers alone, not of ppoi"),
        (COVERAGE + '"oracle","chainId":1,"missing":1,"extra":0}', "coverage is of indexers alone, not of oracle"),
        (COVERAGE + '"indexer","chainId":1,"missing":-1,"extra":0}', WHOLE + "missing`"),
        (COVERAGE + '"indexer","chainId":null,"missing":1,"extra":0}', "chainId has to be a number for indexer"),
        (OF_PPOI + ',"chainId":null}', "chainId has to be a number for ppoi"),
        (OF_PPOI + ',"chainId":0}', "not a line of the log: Expected `int` >= 1 - at `$.chainId`"),
        (OF_PPOI + ',"chainId":true}', "not a line of the log: Expected `int | null`, got `bool` - at `$.chainId`"),
        (OF_PPOI + "}", "not a line of the log: Object missing required field `chainId`"),
        (PROBE + '"nothing","service":"messaging","chainId":1}', "chainId has to be null for messaging"),
        (PROBE + '"perhaps","service":"ppoi","chainId":1}', "not a line of the log: Invalid enum value 'perhaps'"),
        (PROBE + '"missing-list","service":"indexer","chainId":1}', "outcome missing-list is not one of indexer"),
        (PROBE + '"failed","service":"indexer","chainId":1}', "error is missing"),
        (ANSWERED + "}", "an answer of this service has position"),
        (ANSWERED + ',"position":-1}', WHOLE + "position`"),
        (ANSWERED + ',"position":1.5}', "not a line of the log: Expected `int | null`, got `float` - at `$.position`"),
        (ANSWERED + ',"position":9007199254740992}', "not a line of the log: Expected `int` <= 9007199254740991"),
        (
            PROBE + '"answered","service":"broadcasters","chainId":1,"responding":3,"monitored":2}',
            "responding is 3, above monitored, which is 2",
        ),
        (
            VIEW + ',"expiresAt":null,"reason":"synced","status":"fine"}',
            "not a line of the log: Invalid enum value 'fine'",
        ),
        (
            VIEW + ',"expiresAt":null,"reason":"Synced","status":"current"}',
            "not a line of the log: Expected `str` match",
        ),
        (VIEW + ',"expiresAt":"noon","reason":"synced","status":"current"}', f"expiresAt: 'noon' is not {INSTANT}"),
        (HEAD + ',"blockAt":"noon"}', f"blockAt: 'noon' is not {INSTANT}"),
        (
            HEAD + ',"blockAt":"2026-11-05T12:00:00.000Z","readAt":"2026-11-05T12:00:00.001Z"}',
            "readAt is 2026-11-05T12:00:00.001Z, later than at, which is 2026-11-05T12:00:00.000Z",
        ),
    ],
)
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
