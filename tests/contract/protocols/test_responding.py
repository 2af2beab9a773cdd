"""Services of which an answer says no more than that they answer: any over HTTP, any over JSON-RPC."""

from typing import Any

import msgspec
import pytest

from lookout.core.model import Check, Failed, Found, Responding
from lookout.protocols.client.failure import ProbeFailed
from lookout.protocols.client.request import KindTable
from lookout.protocols.client.session import open_session
from lookout.protocols.generic import HttpTable, JsonRpcTable
from lookout.protocols.registry import protocol_of
from lookout.protocols.source import observe
from tests.builders import NOON
from tests.contract.protocols.recorded import parser_of, recorded
from tests.contract.protocols.upstreams import Answer, answering

MISMATCH = "not_expected"
NO_VALUE = "pointer_missing: "


def http_table(url: str = "http://127.0.0.1", **keys: Any) -> HttpTable:
    return HttpTable(None, "http", url, **keys)


def jsonrpc_table(url: str = "http://127.0.0.1", method: str = "eth_chainId", **keys: Any) -> JsonRpcTable:
    return JsonRpcTable(None, "jsonrpc", url, method=method, **keys)


def outcome_of(table: KindTable, body: bytes) -> object:
    try:
        return parser_of(table)(body)
    except ProbeFailed as failure:
        return failure.reason


async def probe(table: KindTable) -> Found:
    (source,) = protocol_of(table).sources("relayer", table)
    async with open_session(20) as session:
        found = await observe(source, session, lambda: NOON)
    return found[Check("relayer", None)]


@pytest.mark.clause("M9")
@pytest.mark.parametrize(
    ("body", "keys", "expected"),
    [
        pytest.param(b"OK", {}, Responding(), id="a text, where nothing is expected of it"),
        pytest.param(b"", {}, Responding(), id="no body, where nothing is expected of it"),
        pytest.param(b"\xff{", {}, Responding(), id="bytes that are no JSON, where nothing is expected of them"),
        pytest.param(b"OK", {"pointer": "/status"}, "not_json", id="a text with a pointer into it"),
        pytest.param(b"OK", {"expect": "OK"}, "not_json", id="a text that is no JSON is not compared"),
        pytest.param(b'"OK"', {"expect": "OK"}, Responding(), id="without a pointer the document is compared"),
        pytest.param(b"7", {"expect": 7}, Responding(), id="a document that is a number"),
        pytest.param(recorded("http-relayer.json"), {"pointer": "/status"}, Responding(), id="something is there"),
        pytest.param(recorded("http-relayer.json"), {"pointer": "/wallets"}, Responding(), id="so is a number"),
        pytest.param(b'{"status":false}', {"pointer": "/status"}, Responding(), id="false is something"),
        pytest.param(b'{"status":{}}', {"pointer": "/status"}, Responding(), id="an empty table is something"),
        pytest.param(b'{"status":1e999}', {"pointer": "/status"}, Responding(), id="so is a number that cannot be"),
        pytest.param(b'{"status":null}', {"pointer": "/status"}, NO_VALUE + "/status", id="null is nothing"),
        pytest.param(b"{}", {"pointer": "/status"}, NO_VALUE + "/status", id="an absent key"),
        pytest.param(b"[]", {"pointer": "/0"}, NO_VALUE + "/0", id="an empty list"),
    ],
)
def test_what_an_http_answer_has_to_hold(body: bytes, keys: dict[str, Any], expected: object) -> None:
    assert outcome_of(http_table(**keys), body) == expected


@pytest.mark.clause("M9")
@pytest.mark.parametrize(
    ("value", "expect", "fits"),
    [
        (b'"ok"', "ok", True),
        (b'"ok"', "OK", False),
        (b'"ok "', "ok", False),
        (b'"\\u006fk"', "ok", True),
        (b"3", 3, True),
        (b"3", "3", True),
        (b'"3"', 3, True),
        (b"3", 4, False),
        (b"-3", -3, True),
        (b"3.0", 3, False),
        (b"3.0", "3.0", False),
        (b"3e0", 3, False),
        (b"true", True, True),
        (b"true", "true", True),
        (b'"true"', True, True),
        (b"1", True, False),
        (b"true", 1, False),
        (b"false", False, True),
        (b"0", False, False),
        (b"null", "null", True),
        (b"null", "None", False),
        (b"null", False, False),
        (b"[]", "[]", False),
        (b'["ok"]', "ok", False),
        (b"{}", "{}", False),
    ],
)
def test_a_value_is_compared_by_its_text(value: bytes, expect: str | int | bool, fits: bool) -> None:
    outcome = outcome_of(http_table(pointer="/is", expect=expect), b'{"is":%b}' % value)
    assert outcome == (Responding() if fits else MISMATCH)


RESULTS = {
    "a bundler's entry points": (recorded("jsonrpc-entry-points.json"), {}, Responding()),
    "the second of them": (recorded("jsonrpc-entry-points.json"), {"pointer": "/1"}, Responding()),
    "a third that is not there": (recorded("jsonrpc-entry-points.json"), {"pointer": "/2"}, NO_VALUE + "/2"),
    "the expected entry point": (
        recorded("jsonrpc-entry-points.json"),
        {"pointer": "/0", "expect": "0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789"},
        Responding(),
    ),
    "an empty list is a result": (b'{"jsonrpc":"2.0","id":1,"result":[]}', {}, Responding()),
    "it has no first entry": (b'{"jsonrpc":"2.0","id":1,"result":[]}', {"pointer": "/0"}, NO_VALUE + "/0"),
    "without a pointer the result is compared": (
        recorded("jsonrpc-client-version.json"),
        {"expect": "HardhatNetwork/2.29.1/@nomicfoundation/edr/0.3.8"},
        Responding(),
    ),
    "another version": (recorded("jsonrpc-client-version.json"), {"expect": "Geth"}, MISMATCH),
    "a pointer into a text": (recorded("jsonrpc-client-version.json"), {"pointer": "/0"}, NO_VALUE + "/0"),
    "false is a result": (b'{"jsonrpc":"2.0","id":1,"result":false}', {}, Responding()),
    "null is none": (b'{"jsonrpc":"2.0","id":1,"result":null}', {}, "not_understood: a null result"),
    "unless it is expected": (b'{"jsonrpc":"2.0","id":1,"result":null}', {"expect": "null"}, Responding()),
    "no result at all": (b'{"jsonrpc":"2.0","id":1}', {}, "not_understood: no JSON-RPC answer"),
    "an error inside 200": (recorded("jsonrpc-not-supported.json"), {}, "jsonrpc_error: -32004"),
    "an error beside the expected result": (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32005},"result":"0x1"}',
        {"expect": "0x1"},
        "rate_limited: -32005",
    ),
}


@pytest.mark.clause("M9")
@pytest.mark.parametrize(("body", "keys", "expected"), RESULTS.values(), ids=RESULTS)
def test_what_a_json_rpc_answer_has_to_hold(body: bytes, keys: dict[str, Any], expected: object) -> None:
    assert outcome_of(jsonrpc_table(**keys), body) == expected


@pytest.mark.parametrize(
    ("keys", "params"),
    [
        pytest.param({}, [], id="none are an empty list"),
        pytest.param({"params": ("latest", [1, {"a": True}])}, ["latest", [1, {"a": True}]], id="a list"),
        pytest.param({"params": {"from": 1.5}}, {"from": 1.5}, id="a table"),
    ],
)
async def test_the_method_is_called_with_its_params(keys: dict[str, Any], params: object) -> None:
    async with answering(lambda _: (200, b'{"id":1,"result":"0x1"}')) as (url, asked):
        assert await probe(jsonrpc_table(f"{url}/rpc?key=K", headers={"X-Api-Key": "K"}, **keys)) == Responding()
    (request,) = asked
    assert (request.method, request.target, request.headers["x-api-key"]) == ("POST", "/rpc?key=K", "K")
    called = {"jsonrpc": "2.0", "method": "eth_chainId", "params": params, "id": 1}
    assert msgspec.json.decode(request.body) == called


CODES = {
    "200": (lambda _: (200, b"OK"), {}, Responding()),
    "204 where 200 is expected": (lambda _: (204, b""), {}, Failed("http_status: 204")),
    "204 where it is expected": (lambda _: (204, b""), {"expect_code": 204}, Responding()),
    "401 where it is expected": (lambda _: (401, b"no"), {"expect_code": 401}, Responding()),
    "200 where 401 is expected": (lambda _: (200, b"OK"), {"expect_code": 401}, Failed("http_status: 200")),
    "a redirect is not followed": (lambda _: (302, b""), {}, Failed("http_status: 302")),
    "a redirect that is expected": (lambda _: (302, b""), {"expect_code": 302}, Responding()),
    "the expected code with another status": (
        lambda _: (503, b'{"status":"ok"}'),
        {"expect_code": 503, "pointer": "/status", "expect": "paused"},
        Failed(MISMATCH),
    ),
    "a body that is too long": (lambda _: (200, b"x" * 1_048_577), {}, Failed("too_large: over 1048576 bytes")),
}


@pytest.mark.parametrize(("answer", "keys", "expected"), CODES.values(), ids=CODES)
async def test_the_expected_code_is_an_answer(answer: Answer, keys: dict[str, Any], expected: Found) -> None:
    async with answering(answer) as (url, asked):
        assert await probe(http_table(f"{url}/health", headers={"X-Api-Key": "K"}, **keys)) == expected
    (request,) = asked
    assert (request.method, request.target, request.headers["x-api-key"]) == ("GET", "/health", "K")
