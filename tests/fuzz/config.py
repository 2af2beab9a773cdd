"""Hostile configurations: one can be used throughout, or everything wrong with it is said, and no secret is."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from hypothesis import strategies as st

from lookout.config.file import ConfigError, read_config
from lookout.config.settings import sources_of
from lookout.core.ledger import Ledger
from lookout.documents.reports import history_document
from lookout.edge.varnish import OriginError, configuration
from tests.builders import NOON
from tests.fuzz.changes import changed_bytes
from tests.fuzz.hunt import Found, Kind

_ROOT: Final = Path(__file__).parent.parent.parent
_EXAMPLES: Final = (_ROOT / "tests" / "contract" / "config", _ROOT / "tests" / "data" / "vectors")
SECRET: Final = "hunter2-of-the-environment"  # noqa: S105 - it opens nothing
ENVIRONMENT: Final = {"SECRET": SECRET, "URL": f"http://user:{SECRET}@127.0.0.1:1/{SECRET}", "NUMBER": "5"}
_VALUE: Final = re.compile(rb"(?<== )[^\n#]+|\"[^\"\n]*\"")
_ODD: Final = (
    b"0", b"-1", b"1.5", b"inf", b"-inf", b"nan", b"1e308", b"1e-300", b"9223372036854775807", b"9" * 30,
    b"9" * 5_000, b"true", b'""', b'"x"', b'" "', b'"${SECRET}"', b'"${SECRET}${SECRET}"', b'"${URL}"',
    b'"${NUMBER}"', b'"${MISSING}"', b'"${}"', b'"$"', b'"${SECRET"', b"'${SECRET}'", b'"a${SECRET}b"',
    b'"http://${SECRET}:${SECRET}"', b"[]", b'[""]', b'["${SECRET}"]', b"[1, 1]", b"[[]]", b"{}",
    b'{a = "${SECRET}"}', b"{a.b.c = 1}", b"2026-11-15", b"2026-11-15T12:00:00Z", b"12:00:00", b'"\\u0000"', b'"\\n"',
    b'"http://a\\nb"', b'"http://["', b'"http://[::1"', b'"http://a:99999"', b'"http://a:\xd9\xa1"', b'"127.0.0.1:0"',
    b'"[::]:99999"', b'"::1:80"', b'"/"', b'"~2"', b'"postgresql://"', b'"postgresql://${SECRET}@/x?host=%zz"',
    b'"sqlite:"', b'"' + b"x" * 5_000 + b'"', b"[" * 300 + b"]" * 300, b"[" * 5_000 + b"]" * 5_000,
    b"0x7fffffffffffffff", b"1_000", b"[1, 42161, 137]", b"1", b"11155111", b'"\xf0\x9f\x98\x80"',
)  # fmt: skip
_KEYS: Final = (
    b"headers" + b".a" * 150 + b' = "x"', b"url = 1", b"rpc = 1", b"[server]", b"[[chains]]", b"[ppoi]", b"[policy]",
    b"[history]", b"[broadcasters]", b"[messaging]", b"[store]", b"[log]", b"[admin]", b"[edge]", b"[monitor]",
    b"recheck_s = nan", b"bucket_s = inf", b"block_time_s = 1e-300", b"block_time_s = nan",
    b"members" + b".a" * 150 + b" = []", b"networks.1 = 1", b'headers = {"a" = "${SECRET}"}', b"x" * 3_000 + b" = 1",
    b"a" + b".b" * 150 + b" = 1",
)  # fmt: skip


def judge(folder: Path, case: bytes) -> str:
    path = folder / "lookout.toml"
    path.write_bytes(case)
    try:
        settings = read_config(path, ENVIRONMENT)
    except ConfigError as error:
        text = str(error)
        if SECRET in text:
            raise Found(f"a secret of the environment is in an error: {text[:200]!r}", case) from None
        if not error.messages or not all(re.match(rf"{re.escape(str(path))}: \S", each) for each in error.messages):
            raise Found(f"an error does not say where or what: {text[:200]!r}", case) from None
        return re.sub(r"[^a-z; ]|'.*?'", "", text.removeprefix(str(path)).lower())[:60]
    plan = settings.plan()
    ledger = Ledger(plan)
    ledger.start(NOON)
    ledger.publish(NOON)
    history_document(ledger.view())
    sources_of(settings)
    with suppress(OriginError):
        configuration(settings)
    return f"{len(plan.monitored)} monitored"


def _files() -> list[bytes]:
    files = [_ROOT / "lookout.example.toml", *(file for folder in _EXAMPLES for file in sorted(folder.rglob("*.toml")))]
    return [file.read_bytes() for file in files]


@st.composite
def _configurations(draw: st.DrawFn) -> bytes:
    files = _files()
    case = draw(st.sampled_from(files))
    for _ in range(draw(st.integers(1, 4))):
        values, lines = list(_VALUE.finditer(case)), case.split(b"\n")
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(("value", "value", "value", "line", "no line", "bytes"))):
            case "value" if values:
                value = draw(st.sampled_from(values))
                case = case[: value.start()] + draw(st.sampled_from(_ODD)) + case[value.end() :]
            case "line":
                others = draw(st.sampled_from(files)).split(b"\n")
                case = b"\n".join((*lines[:at], draw(st.sampled_from((*_KEYS, *others))), *lines[at:]))
            case "no line":
                case = b"\n".join((*lines[:at], *lines[at + 1 :]))
            case _:
                case = draw(changed_bytes(case))
    return case


@contextmanager
def judging() -> Iterator[Callable[[bytes], str]]:
    with TemporaryDirectory() as folder:
        yield partial(judge, Path(folder))


CONFIG: Final = Kind(_configurations(), judging)
