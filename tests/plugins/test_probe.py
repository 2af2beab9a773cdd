"""A probe by a plug-in that does whatever it likes: it ends in time, with an answer or a reason that shows nothing."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lookout.core.model import Blocks, Check, Failed, Found, Nothing
from lookout.protocols.broadcasters.seen import NOTHING_SEEN
from lookout.protocols.client.access import AccessTable
from lookout.protocols.client.failure import OwnFault
from lookout.protocols.client.request import Request
from lookout.protocols.client.session import MOST_STARTS, open_session
from lookout.protocols.plugins.process import PlainRequest, PluginReply
from lookout.protocols.plugins.source import PluginFailed, PluginProtocol, read_found, read_request, tidy_reason
from lookout.protocols.source import observe
from lookout.protocols.tables import KindTable
from tests.builders import NOON
from tests.contract.protocols.upstreams import answering
from tests.plugins.packages import GOOD, install, path_with, with_parse, with_request

SECRET: Final = "hunter2-hunter2"  # noqa: S105  what must not show
TIMEOUT_S: Final = 20
FAILS_AFTER_S: Final = 4
OWN_SLEEP: Final = 3_600 + os.getpid()  # seconds; of no other process that tests at the same time
BODY: Final = b'{"block":17}'
SETTINGS: Final = KindTable(
    1, "tidal", f"http://ann:pw12@upstream.example/block?key={SECRET}", headers={"Authorization": "Bearer tok1"}
)


def never(*_: object) -> Any:
    raise AssertionError("a plug-in's code is not run by the monitor")


async def probe(
    folder: Path, code: str, monkeypatch: pytest.MonkeyPatch, timeout_s: float = TIMEOUT_S
) -> tuple[Found, list[str]]:
    """What is found, and what the upstream was asked for."""
    place = install(folder, code)
    for name, value in path_with(folder).items():
        monkeypatch.setenv(name, value)
    protocol = PluginProtocol("tidal", Blocks, KindTable, never, never, place=place)
    async with answering(lambda _: (200, BODY)) as (url, asked), open_session(timeout_s) as session:
        settings = KindTable(1, "tidal", f"{url}/status?key={SECRET}", headers={"X-Key": SECRET})
        (source,) = protocol.sources("indexer", settings, NOTHING_SEEN)
        assert SECRET not in repr(source)
        found = await observe(source, session, lambda: NOON)
        return found[Check("indexer", 1)], [f"{each.target} {each.headers.get('x-key')}" for each in asked]


async def test_a_plug_in_asks_with_the_settings_and_reads_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await probe(tmp_path, GOOD, monkeypatch) == (Blocks(17), [f"/status?key={SECRET} {SECRET}"])


@pytest.mark.parametrize(
    ("code", "found"),
    [
        pytest.param(with_parse("print('x' * 100_000)", "return Blocks(3)"), Blocks(3), id="it prints"),
        pytest.param(
            with_parse(
                "import threading", "threading.Thread(target=threading.Event().wait).start()", "return Blocks(3)"
            ),
            Blocks(3),
            id="it leaves a thread",
        ),
        pytest.param(
            with_parse("import os", "return Blocks(len([n for n in os.environ if 'SECRET' in n]))"),
            Blocks(0),
            id="it looks for secrets in the environment",
        ),
        pytest.param(
            with_parse("from lookout.protocols.api import Nothing", "return Nothing()"),
            Nothing(),
            id="it finds nothing",
        ),
        pytest.param(
            with_parse("raise ValueError(settings.url)"),
            Failed("plug_in: raised ValueError"),
            id="it raises a secret",
        ),
        pytest.param(
            with_parse("from lookout.protocols.api import ProbeFailed", "raise ProbeFailed('no ' + settings.url)"),
            Failed("not_understood: for a reason that repeats a setting"),
            id="its reason has a secret",
        ),
        pytest.param(
            with_parse("raise KeyboardInterrupt"), Failed("plug_in: raised KeyboardInterrupt"), id="it interrupts"
        ),
        pytest.param(with_parse("return 17"), Failed("plug_in: gave a int and no Blocks"), id="it gives a number"),
        pytest.param(
            with_parse("return Blocks(-1)"),
            Failed("plug_in: gave something else than it declares"),
            id="out of range",
        ),
        pytest.param(
            with_parse("return Blocks(body)"), Failed("plug_in: gave something else than it declares"), id="no count"
        ),
        pytest.param(with_parse("import os; os._exit(0)"), Failed("plug_in: ended its process"), id="it exits"),
        pytest.param(
            with_parse("import ctypes; ctypes.string_at(0)"), Failed("plug_in: ended its process"), id="it crashes"
        ),
        pytest.param(
            with_parse("leak = []", "while True: leak.append(bytearray(1 << 24))"),
            Failed("plug_in: raised MemoryError"),
            id="it leaks",
        ),
        pytest.param(
            with_parse("open(__file__ + '.out', 'wb', buffering=0).write(b'x')"),
            Failed("plug_in: raised OSError"),
            id="it fills the disk",
        ),
        pytest.param(
            with_parse("import os", "for n in range(3, 20): os.write(n, b'nonsense' * 99)"),
            Failed("plug_in: replied at too great a length"),
            id="it writes where its replies go",
        ),
        pytest.param(
            with_request("return Request('GET', 'file:///etc/passwd')"),
            Failed("plug_in: asks for no http:// or https:// address"),
            id="it asks for a file",
        ),
        pytest.param(
            with_request("return Request('GET', settings.url, AccessTable(headers={'X': 'a\\r\\nY: b'}))"),
            Failed("plug_in: sends headers that HTTP does not allow"),
            id="it smuggles a header",
        ),
        pytest.param(with_request("return None"), Failed("plug_in: gave a NoneType and no Request"), id="no request"),
        pytest.param(
            "raise OSError",
            Failed('plug_in: raises OSError when it is imported; python -c "import lookout_tidal" shows where'),
            id="it is broken since the start",
        ),
    ],
)
async def test_whatever_it_does_is_an_answer_or_a_reason(
    code: str, found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPERATORS_SECRET", SECRET)
    assert (await probe(tmp_path, code, monkeypatch))[0] == found
    assert children() == []


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(with_parse("import time", "time.sleep(3600)"), id="in parse"),
        pytest.param(with_parse("while True: pass"), id="in parse, computing"),
        pytest.param(with_parse("import subprocess", f"subprocess.run(['sleep', '{OWN_SLEEP}'])"), id="a program"),
        pytest.param(with_request("import time", "time.sleep(3600)"), id="in request"),
    ],
)
async def test_one_that_hangs_ends_with_the_probe(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = time.monotonic()
    found, _ = await probe(tmp_path, code, monkeypatch, FAILS_AFTER_S)
    assert found == Failed("plug_in: did not answer in time")
    assert FAILS_AFTER_S - 0.1 < time.monotonic() - began < FAILS_AFTER_S + 30
    assert children() == []


@pytest.mark.long
async def test_after_a_leak_the_next_probe_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = install(
        tmp_path, with_parse("leak = []", "while b'leak' in body: leak.append(bytearray(1 << 24))", "return Blocks(3)")
    )
    for name, value in path_with(tmp_path).items():
        monkeypatch.setenv(name, value)
    protocol = PluginProtocol("tidal", Blocks, KindTable, never, never, place=place)
    bodies = [b"leak", b"{}", b"leak", b"{}"]
    async with answering(lambda _: (200, bodies.pop(0))) as (url, _), open_session(TIMEOUT_S) as session:
        (source,) = protocol.sources("indexer", KindTable(1, "tidal", url), NOTHING_SEEN)
        found = [(await observe(source, session, lambda: NOON))[Check("indexer", 1)] for _ in range(4)]
    assert found == [Failed("plug_in: raised MemoryError"), Blocks(3)] * 2


def test_how_it_is_reached_is_the_settings_to_say() -> None:
    """Whatever the plug-in says."""
    plain = PlainRequest("POST", "http://a/b", {"X": "y"}, b"{}", 201)
    settings = KindTable(1, "tidal", "http://a", ca_file="certificates", proxy="http://proxy")
    access = AccessTable(headers={"X": "y"}, ca_file="certificates", proxy="http://proxy")
    reply = PluginReply("request", msgspec.Raw(msgspec.msgpack.encode(plain)))
    assert read_request(reply, settings) == Request("POST", "http://a/b", access, b"{}", expect_code=201)


def children() -> list[str]:
    """The commands that this process started, and those that they did, which have not ended."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
                command = (folder / "cmdline").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            is_plugin = "lookout.protocols.plugins.process" in command and int(parent) == os.getpid()
            if state not in "ZX" and (is_plugin or command == f"sleep\x00{OWN_SLEEP}\x00"):
                found.append(command)
    return found


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("no block", "no block"),
        ("", "without a reason"),
        ("two\nlines\x1b[31m", "two\\nlines\\x1b[31m"),
        ("x" * 200, "x" * 77 + "..."),
        ("\x00" * 200, "\\x00" * 19 + "\\..."),
        (f"the key {SECRET} was refused", "for a reason that repeats a setting"),
        ("user ann, password pw12", "for a reason that repeats a setting"),
        ("refused: Bearer tok1", "for a reason that repeats a setting"),
        ("no answer at upstream.example", "for a reason that repeats a setting"),
        ("refused: hunter2%2Dhunter2", "for a reason that repeats a setting"),
        ("refused: Basic YW5uOnB3MTI=", "for a reason that repeats a setting"),
        ("refused: YW5uOnB3MTI", "for a reason that repeats a setting"),
        ("refused: 100%25 used", "refused: 100%25 used"),
    ],
)
def test_a_reason_is_short_of_one_line_and_repeats_no_setting(reason: str, shown: str) -> None:
    assert tidy_reason(reason, SETTINGS) == shown


def test_a_reason_repeats_no_setting_that_is_percent_encoded_there() -> None:
    settings = KindTable(1, "tidal", "http://ann:p%40ss-w0rd@h/")
    for reason in ("p@ss-w0rd", "p%40ss-w0rd", "p%40ss%2Dw0rd"):
        assert tidy_reason(f"refused: {reason}", settings) == "for a reason that repeats a setting"


@pytest.mark.parametrize(
    "reply",
    [
        PluginReply("answer", msgspec.Raw(msgspec.msgpack.encode({"position": 2**53}))),
        PluginReply("answer", msgspec.Raw(msgspec.msgpack.encode({"position": True}))),
        PluginReply("answer"),
        PluginReply("failed", msgspec.Raw(msgspec.msgpack.encode(3))),
        PluginReply("request"),
        PluginReply("broken", msgspec.Raw(msgspec.msgpack.encode("a\nb"))),
    ],
)
def test_a_reply_that_is_none_is_the_plug_ins_failure(reply: PluginReply) -> None:
    with pytest.raises(PluginFailed, match="plug_in: gave something else than it declares"):
        read_found(reply, Blocks, SETTINGS)


COUNTS_STARTS: Final = with_request(
    "import os, time",
    "starting = __file__ + '.starting'",
    "os.makedirs(starting, exist_ok=True)",
    "open(f'{starting}/{os.getpid()}', 'w').close()",
    "time.sleep(0.5)",
    "at_once = len(os.listdir(starting))",
    "os.remove(f'{starting}/{os.getpid()}')",
    "return Request('GET', f'{settings.url}/{at_once}', settings)",
)


@pytest.mark.long
async def test_however_many_rows_there_are_only_a_few_processes_start_at_once_and_none_fails_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = install(tmp_path, COUNTS_STARTS)
    for name, value in path_with(tmp_path).items():
        monkeypatch.setenv(name, value)
    protocol = PluginProtocol("tidal", Blocks, KindTable, never, never, place=place)
    async with answering(lambda _: (200, BODY)) as (url, asked), open_session(TIMEOUT_S) as session:
        sources = [
            source
            for chain_id in range(1, 3 * MOST_STARTS + 1)
            for source in protocol.sources("indexer", KindTable(chain_id, "tidal", url), NOTHING_SEEN)
        ]
        found = await asyncio.gather(*(observe(source, session, lambda: NOON) for source in sources))
    assert [list(each.values()) for each in found] == [[Blocks(17)]] * len(sources)
    assert 1 <= max(int(each.target.rpartition("/")[2]) for each in asked) <= MOST_STARTS


@pytest.mark.clause("M17")
async def test_a_row_whose_turn_does_not_come_was_not_asked_for_a_lack_of_our_own(tmp_path: Path) -> None:
    protocol = PluginProtocol("tidal", Blocks, KindTable, never, never, place=install(tmp_path))
    (source,) = protocol.sources("indexer", SETTINGS, NOTHING_SEEN)
    async with open_session(0.2) as session:
        for _ in range(MOST_STARTS):
            await session.starts.acquire()
        with pytest.raises(OwnFault) as raised:
            await observe(source, session, lambda: NOON)
    assert raised.value.lacking == "processes"
