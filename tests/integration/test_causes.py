"""The ways in which a service fails, done by real servers: log, metric, alert, board, record and `probe` say the same
cause of each, and it is the right one (M16)."""

import asyncio
import json
import re
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cases import text_of
from tests.commands import a_command, lookout, said
from tests.contract.protocols.upstreams import Conversation, dripping, resetting, saying, silence, talking
from tests.integration.authority import Authority
from tests.integration.fast import a_world
from tests.integration.metrics import scrape
from tests.integration.receivers import Receiver, a_hook
from tests.integration.served import a_free_port
from tests.integration.whole_service import answer
from tests.wait import until_async

CANARY: Final = "canary-5f2c91"


def reply(body: bytes, status: bytes = b"200 OK", *headers: bytes) -> Conversation:
    lines = (b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), b"Connection: close", *headers, b"", body)
    return saying(b"\r\n".join(lines))


_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
_PAUSED: Final = reply(b'{"status":"paused","key":"canary-5f2c91"}')
# By the service's name: its kind and more keys, its server or the address of none, and the cause.
WAYS: Final[dict[str, tuple[str, str, Conversation | str, str]]] = {
    "status503": ("http", "", reply(b"", b"503 No"), "http_status: 503"),
    "limited": ("http", "", reply(b"", b"429 Slowly"), "rate_limited: 429"),
    "elsewhere": (
        "http",
        "",
        reply(b"", b"302 Go", b"Location: https://x.example/canary"),
        "redirect: 302",
    ),
    "page": ("http", 'pointer = "/status"', reply(b"<html>down</html>"), "not_json: HTML or XML"),
    "paused": ("http", 'pointer = "/status"\nexpect = "ok"', _PAUSED, "not_expected"),
    "no-rpc": ("jsonrpc", 'method = "eth_chainId"', _PAUSED, "not_understood: no JSON-RPC answer"),
    "errors": ("squid", "chain = 1", reply(b'{"errors":[{"message":"canary-5f2c91"}]}'), "graphql_errors"),
    "zipped": ("http", "", reply(b"no gzip", b"200 OK", b"Content-Encoding: gzip"), "bad_encoding"),
    "large": ("http", "", reply(b" " * 2_000_000), "too_large: over 1048576 bytes"),
    "expired": ("http", 'ca_file = "CA"', "EXPIRED", "tls: expired"),
    "plain": ("http", "", "https://127.0.0.1:PLAIN", "tls: not TLS"),
    "refused": ("http", "", "NOBODY", "refused"),
    "unnamed": ("http", "", "http://nobody.invalid", "dns"),
    "through-nobody": ("http", 'proxy = "NOBODY"', _PAUSED, "proxy: refused"),
    "silent": ("http", "", silence, "timeout: first byte"),
    "dripping": ("http", "", dripping(_OK, b"1", 0.2), "timeout: body"),
    "cut": ("http", "", saying(_OK + b"abc"), "broken_off"),
    "closing": ("http", "", saying(b""), "closed"),
    "resetting": ("http", "", resetting(b""), "reset"),
    "ssh": ("http", "", saying(b"SSH-2.0-OpenSSH_9.2\r\n"), "bad_http"),
    "another-chain": ("evm", "chain = 137", "WORLD/rpc/1/a", "wrong_chain: 1 instead of 137"),
    "unknown-method": ("jsonrpc", 'method = "eth_none"', "WORLD/rpc/1/b", "jsonrpc_error: -32601"),
}
# What people read of some of them.
IN_WORDS: Final = {
    "status503": "no usable answer: HTTP 503",
    "elsewhere": "no usable answer: it redirects, which is not followed (302)",
    "expired": "not reached: no secure connection (expired)",
    "refused": "not reached: nothing listens at its address",
    "silent": "no complete answer in time (waiting for: first byte)",
    "another-chain": "a node of another chain (1 instead of 137)",
    "unknown-method": "no usable answer: JSON-RPC error -32601",
}
CONFIG: Final = text_of("settings/causes.toml")
# A message lists no more than 20.
RULES: Final = "".join(
    f'[[alerts.rules]]\nservices = {names}\nfor_s = 0\nremind_s = 0\ntargets = ["{target}"]\n'
    for target, names in (("one", list(WAYS)[:11]), ("other", list(WAYS)[11:]))
)


def filled(text: str, words: dict[str, str]) -> str:
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, words[word])
    return text


@pytest.mark.clause("M16")
@pytest.mark.first
async def test_log_metric_alert_board_record_and_probe_say_the_same_cause(tmp_path: Path) -> None:
    trusted = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(trusted.vouch("127.0.0.1", days=-1))
    admin, nobody = f"127.0.0.1:{a_free_port()}", f"http://127.0.0.1:{a_free_port()}"
    async with AsyncExitStack() as servers:
        world = await servers.enter_async_context(a_world(tmp_path))
        hook = servers.enter_context(a_hook())
        expired = await servers.enter_async_context(talking(_PAUSED, tls))
        plain = await servers.enter_async_context(talking(dripping(_OK, b"1", 0.2)))
        words = {"ADMIN": admin, "HOOK": hook.address, "CA": str(trusted.path), "NOBODY": nobody, "WORLD": world.base}
        words |= {"EXPIRED": expired, "PLAIN": plain.rpartition(":")[2]}
        services = ""
        for name, (kind, more, server, _) in WAYS.items():
            url = server if isinstance(server, str) else await servers.enter_async_context(talking(server))
            services += f'[[services]]\nname = "{name}"\n[[services.checks]]\nkind = "{kind}"\nurl = "{url}?{CANARY}"\n'
            services += f'headers = {{Authorization = "{CANARY}"}}\n{more}\n'
        chains = "".join(
            f'[[chains]]\nid = {chain_id}\nrpc = ["WORLD_/rpc/{chain_id}/a", "WORLD_/rpc/{chain_id}/b", '
            f'"WORLD_/rpc/{chain_id}/c"]\n'
            for chain_id in (1, 137)
        ).replace("WORLD_", world.base)
        (tmp_path / "lookout.toml").write_text(filled(CONFIG + RULES + services, words) + chains)
        with a_command(tmp_path, "monitor", "-c", "lookout.toml") as process:

            async def are_all_reported() -> bool:
                assert process.poll() is None, said(tmp_path)
                return len(causes_in_alerts(hook)) == len(WAYS)

            try:
                await until_async(are_all_reported, "every service is unavailable, and somebody was alerted", 90)
            except AssertionError as error:
                error.add_note(f"not reported: {WAYS.keys() - causes_in_alerts(hook)}")
                raise
            samples = await scrape(world.http, admin)
            board = await answer(world.http, f"http://{admin}/sources")
        # In a thread, since some of the servers are on this event loop.
        arguments = (tmp_path, "probe", "-c", "lookout.toml")
        probed = await asyncio.to_thread(lookout, *arguments, environment={"COLUMNS": "240"})
    right = {name: cause for name, (_, _, _, cause) in WAYS.items()}
    assert causes_in_alerts(hook) == right
    sent = "".join(message.body for message in hook.accepted)
    assert [words for words in IN_WORDS.values() if words not in sent] == []
    assert causes_on_board(board) == right
    assert causes_in_log(tmp_path) == right
    assert causes_in_record(tmp_path) == right
    counted = {key[3]: key[1] for key in samples if key[0] == "lookout_probe_failures_total"}
    assert counted == {name: cause.partition(":")[0] for name, cause in right.items()}
    assert {name: words_in_log(tmp_path)[name] for name in IN_WORDS} == IN_WORDS
    for name, cause in right.items():
        code = cause.partition(":")[0]
        assert re.search(rf"\b{name}\b.* unreachable, {code}: {re.escape(IN_WORDS.get(name, ''))}", probed.stdout), (
            f"{name}: {cause}\n{probed.stdout}"
        )
    shown = [said(tmp_path), probed.stdout, probed.stderr, str(hook.accepted), str(samples), str(board)]
    assert all(CANARY not in each for each in shown)
    assert CANARY not in (tmp_path / "seen.jsonl").read_text()


def causes_in_alerts(hook: Receiver) -> dict[str, str]:
    causes = {item["service"]: item["cause"] for item in hook.items()}
    return {service: ": ".join(filter(None, (each["code"], each["detail"]))) for service, each in causes.items()}


def causes_on_board(board: Any) -> dict[str, str]:
    sources = (each for each in board if each["kind"] == "source")
    return {each["rows"][0]["service"]: each["cause"] for each in sources}


def causes_in_log(folder: Path) -> dict[str, str]:
    lines = (json.loads(line) for line in said(folder).splitlines() if line.startswith("{"))
    return {each["check"].split()[0]: each["cause"] for each in lines if each["event"] == "status"}


def words_in_log(folder: Path) -> dict[str, str]:
    lines = (json.loads(line) for line in said(folder).splitlines() if line.startswith("{"))
    return {each["check"].split()[0]: each["why"] for each in lines if each["event"] == "status"}


def causes_in_record(folder: Path) -> dict[str, str]:
    lines = map(json.loads, (folder / "seen.jsonl").read_text().splitlines())
    return {each["service"]: each["error"] for each in lines if each["kind"] == "probe"}
