"""A probe by a plug-in: the monitor fetches, and whatever the plug-in gives or raises is an answer or a cause."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from lookout.core.model import Blocks, Check, Failed, Found, Members, Nothing
from lookout.protocols.api import AccessTable, KindTable, ProbeFailed, Protocol, Request
from lookout.protocols.client.failure import OwnFault
from lookout.protocols.client.session import open_session
from lookout.protocols.plugins import PluginProtocol, load_protocol, make_request, parse_answer
from lookout.protocols.source import observe
from tests.builders import NOON
from tests.contract.protocols.upstreams import answering
from tests.logs import capture_logs
from tests.plugins.packages import install

SECRET: Final = "hunter2-hunter2"  # noqa: S105  what must not show
SETTINGS: Final = KindTable(
    1, "tidal", f"http://ann:pw12@upstream.example/block?key={SECRET}", headers={"Authorization": "Bearer tok1"}
)
NOT_OWN_WORDS: Final = "plug_in: gave a reason that is not a known cause with a short detail in its own words"
CHECK: Final = Check("indexer", 1)


def raising(error: BaseException) -> Any:
    def raise_it(*_: object) -> Any:
        raise error.with_traceback(None)

    return raise_it


async def test_the_monitor_fetches_for_a_plug_in_and_gives_it_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, distribution=tmp_path.name.replace("_", "-"))
    monkeypatch.syspath_prepend(tmp_path)
    protocol = await asyncio.to_thread(load_protocol, "tidal")
    async with answering(lambda _: (200, b'{"block":17}')) as (url, asked), open_session(20) as session:
        settings = KindTable(1, "tidal", f"{url}/status?key={SECRET}", headers={"X-Key": SECRET})
        (source,) = protocol.sources("indexer", settings)
        assert SECRET not in repr(source)
        assert await observe(source, session, lambda: NOON) == {CHECK: Blocks(17)}
    assert [(request.target, request.headers.get("x-key")) for request in asked] == [(f"/status?key={SECRET}", SECRET)]


async def test_what_a_plug_in_raises_is_a_failed_probe_and_logged_once_without_the_errors_text() -> None:
    protocol = PluginProtocol("tidal", Blocks, KindTable, raising(ValueError(SECRET)), raising(AssertionError()))
    (source,) = protocol.sources("indexer", SETTINGS)
    with capture_logs() as lines:
        async with open_session(20) as session:
            found = [await observe(source, session, lambda: NOON) for _ in range(3)]
    assert found == [{CHECK: Failed("plug_in: raised ValueError")}] * 3
    (line,) = lines
    assert (line["source"], line["what"]) == ("indexer 1", "raised ValueError")
    assert "in raise_it" in line["traceback"]
    assert SECRET not in str(line)


def outcome(parse: Any, answer: Any = Blocks) -> Found | str:
    try:
        return parse_answer(Protocol("tidal", answer, KindTable, raising(AssertionError()), parse), b"", SETTINGS)
    except ProbeFailed as failure:
        return failure.reason


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param(Blocks(3), Blocks(3), id="what it declares"),
        pytest.param(Nothing(SECRET), Nothing(), id="nothing, without its text"),
        pytest.param(Failed("no_such: x"), NOT_OWN_WORDS, id="a failure as a value"),
        pytest.param(17, "plug_in: gave a int and no Blocks", id="a number"),
        pytest.param(Members(1, 2), "plug_in: gave a Members and no Blocks", id="another answer"),
        *(
            pytest.param(
                Blocks(position),  # type: ignore[arg-type]
                "plug_in: gave a Blocks with something else in it than it declares",
                id=f"a position of {position!r}",
            )
            for position in (-1, 2**53, 10**30, True, "3", None, object)
        ),
    ],
)
def test_a_value_that_is_not_as_declared_is_the_plug_ins_failure(value: Any, found: Found | str) -> None:
    assert outcome(lambda *_: value) == found


def test_of_the_members_no_more_respond_than_are_monitored() -> None:
    found = outcome(lambda *_: Members(3, 2), Members)
    assert found == "plug_in: gave more responding members than monitored ones"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (KeyError(SECRET), "plug_in: raised KeyError"),
        (SystemExit(SECRET), "plug_in: raised SystemExit"),
        (RecursionError(), "plug_in: raised RecursionError"),
        (ProbeFailed("not_understood", "no block"), "not_understood: no block"),
        (ProbeFailed("http_status", "503"), "http_status: 503"),
        (ProbeFailed("timeout"), "timeout"),
        (ProbeFailed("not_understood", "100%25 used"), "not_understood: 100%25 used"),
        (ProbeFailed("not_understood", "two\nlines of \x1b[31m"), "not_understood: two?lines of ?[31m"),
        *(
            (ProbeFailed(*arguments), NOT_OWN_WORDS)
            for arguments in [
                ("no block",),
                ("",),
                ("not_understood", "x" * 81),
                (f"not_understood: {SECRET}",),
                ("not_understood", f"the key {SECRET} was refused"),
                ("not_understood", "password pw12"),
                ("not_understood", "refused: Bearer tok1"),
                ("not_understood", "no answer at upstream.example"),
                ("not_understood", "refused: hunter2%2Dhunter2"),
            ]
        ),
    ],
)
def test_what_a_plug_in_raises_has_a_cause_that_can_be_shown(error: BaseException, cause: str) -> None:
    assert outcome(raising(error)) == cause


@pytest.mark.clause("M17")
def test_a_lack_of_memory_is_ours_and_not_the_plug_ins() -> None:
    with pytest.raises(OwnFault, match="no memory left"):
        outcome(raising(MemoryError()))


def test_a_request_that_is_none_is_the_plug_ins_failure() -> None:
    protocol = Protocol("tidal", Blocks, KindTable, lambda _: None, raising(AssertionError()))  # type: ignore[arg-type, return-value]
    with pytest.raises(ProbeFailed, match="plug_in: raised AttributeError"):
        make_request(protocol, SETTINGS)


def test_how_an_upstream_is_reached_is_the_settings_to_say() -> None:
    settings = KindTable(1, "tidal", "http://a", ca_file="certificates", proxy="http://proxy")
    own = Request("POST", "http://a/b", AccessTable(headers={"X": "y"}), b"{}", expect_code=201)
    request = make_request(Protocol("tidal", Blocks, KindTable, lambda _: own, raising(AssertionError())), settings)
    access = AccessTable(headers={"X": "y"}, ca_file="certificates", proxy="http://proxy")
    assert request == Request("POST", "http://a/b", access, b"{}", expect_code=201)
