"""The keys of services that only answer: what they may be, and what is said of those that may not."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import fields

from lookout.base.problem import Problem
from lookout.config.file import ConfigError, read_config
from lookout.config.settings import sources_of
from lookout.core.model import Check, Responding
from lookout.core.services import SERVICES, Service
from lookout.protocols.client.request import KindTable
from lookout.protocols.generic import HttpTable, JsonRpcTable
from lookout.protocols.registry import PROTOCOLS
from lookout.protocols.source import Protocol

CHAIN = '[[chains]]\nid = 1\nname = "Ethereum"\nblock_time_s = 12\nrpc = ["http://127.0.0.1:1/a"]\n'
URL = 'url = "http://127.0.0.1:1"\n'
JSONRPC = f'kind = "jsonrpc"\nmethod = "eth_chainId"\n{URL}'
HTTP = f'kind = "http"\n{URL}'


@pytest.fixture(autouse=True)
def _declared() -> Iterator[None]:
    with (
        SERVICES.including(Service("bundler", Responding)),
        SERVICES.including(Service("relayer", Responding, is_shared=True)),
    ):
        yield


def read(folder: Path, relayer: str, bundler: str = HTTP) -> tuple[KindTable, KindTable]:
    path = folder / "lookout.toml"
    path.write_text(f"{CHAIN}[[bundler]]\nchain = 1\n{bundler}[relayer]\n{relayer}")
    settings = read_config(path, {"KEY": "hunter2"})
    (of_relayer,), (of_bundler,) = settings.sources["relayer"], settings.sources["bundler"]
    assert isinstance(of_relayer, KindTable)
    assert isinstance(of_bundler, KindTable)
    assert [source.checks for source in sources_of(settings).sources] == [
        (Check("bundler", 1),),
        (Check("relayer", None),),
    ]
    return of_relayer, of_bundler


def problems(folder: Path, relayer: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(folder, relayer)
    return [f"{problem.key}: {problem.text}" for problem in caught.value.problems if isinstance(problem, Problem)]


def test_a_service_that_only_answers_may_have_a_chain_or_none(tmp_path: Path) -> None:
    url = "http://127.0.0.1:1"
    relayer, bundler = read(
        tmp_path,
        HTTP + 'expect_code = 204\npointer = "/a~1b"\nexpect = true\n',
        JSONRPC + 'params = ["${KEY}", {a = [1.5, false]}]\nexpect = 3\n',
    )
    assert relayer == HttpTable(None, "http", url, expect_code=204, pointer="/a~1b", expect=True)
    params = ("hunter2", {"a": [1.5, False]})
    assert bundler == JsonRpcTable(1, "jsonrpc", url, method="eth_chainId", params=params, expect=3)


@pytest.mark.parametrize(
    ("relayer", "said"),
    [
        pytest.param(
            f'kind = "jsonrpc"\nmethod = ""\n{URL}',
            ['relayer.method: "" is not allowed; it has to be a text that is not empty'],
            id="a method without a name",
        ),
        pytest.param(
            HTTP + 'pointer = "status"\n',
            ['relayer.pointer: has to be a JSON Pointer such as "/status", or "" for none'],
            id="a pointer without its slash",
        ),
        *(
            pytest.param(
                HTTP + f"expect_code = {code}\n",
                [f"relayer.expect_code: {said} is not allowed; it has to be a whole number from 200 to 599"],
                id=f"the code {code}",
            )
            for code, said in (("199", "199"), ("600", "600"), ('"200"', '"200"'), ("200.5", "200.5"))
        ),
        *(
            pytest.param(
                HTTP + f"expect = {expect}\n",
                ["relayer.expect: its value is not allowed; it has to be a text, a whole number, true or false"],
                id=f"an expected {expect}",
            )
            for expect in ("1.5", "[1]", "2026-11-17", "inf")
        ),
        pytest.param(
            JSONRPC + "expect_code = 400\n",
            ['relayer.expect_code: is for kind "http" alone'],
            id="HTTP's key with JSON-RPC",
        ),
    ],
)
def test_what_no_kind_allows_is_reported(relayer: str, said: list[str], tmp_path: Path) -> None:
    assert problems(tmp_path, relayer) == said


def test_a_key_that_several_kinds_have_is_the_same_in_all_of_them() -> None:
    """For a table has the keys of all kinds that it can be of."""
    seen: dict[str, tuple[object, object]] = {}
    for protocol in PROTOCOLS:
        if isinstance(protocol, Protocol):
            for key in fields(protocol.settings):
                assert seen.setdefault(key.name, (key.type, key.default)) == (key.type, key.default), key.name
    assert {"pointer", "expect"} <= seen.keys()
