"""The ways in which a service fails, done by real servers: log, metric, alert, board, record and `probe` say the same
cause of each, and it is the right one (M16)."""

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.commands import a_command, lookout, said
from tests.contract.protocols.upstreams import dripping, resetting, saying, silence, talking
from tests.integration.authority import Authority
from tests.integration.fast import a_world
from tests.integration.metrics import scrape
from tests.integration.receivers import Receiver, a_hook
from tests.integration.served import a_free_port
from tests.integration.whole_service import answer
from tests.wait import until_async

CANARY: Final = "canary-5f2c91"
_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
_NGINX: Final = """
user root; daemon off; error_log stderr; pid FOLDER/nginx.pid;
events {}
http {
    access_log off; default_type application/json; client_body_temp_path FOLDER/t; proxy_temp_path FOLDER/t;
    fastcgi_temp_path FOLDER/t; uwsgi_temp_path FOLDER/t; scgi_temp_path FOLDER/t;
    server {
        listen 127.0.0.1:PLAIN;
        location /status503 { return 503; }
        location /status401 { return 401; }
        location /limited { return 429; }
        location /elsewhere { return 302 https://login.example/$args; }
        location /upgraded { return 301 https://127.0.0.1/; }
        location /page { return 200 "<html>down</html>"; }
        location /empty { return 200 ""; }
        location /paused { return 200 '{"status":"paused","key":"$args"}'; }
        location /errors { return 200 '{"errors":[{"message":"$args"}]}'; }
        location /zipped { add_header Content-Encoding gzip; return 200 "no gzip"; }
        location /brotli { add_header Content-Encoding br; return 200 "x"; }
        location /large { root FOLDER; }
    }
    server { listen 127.0.0.1:EXPIRED ssl; ssl_certificate EXPIRED_PEM; ssl_certificate_key EXPIRED_PEM; }
    server { listen 127.0.0.1:RENAMED ssl; ssl_certificate RENAMED_PEM; ssl_certificate_key RENAMED_PEM; }
    server { listen 127.0.0.1:STRANGE ssl; ssl_certificate STRANGE_PEM; ssl_certificate_key STRANGE_PEM; }
}
"""
# By the service's name: its kind and more keys, the place of its server, and the cause.
WAYS: Final = {
    "status503": ("http", "", "PLAIN/status503", "http_status: 503"),
    "status401": ("http", "", "PLAIN/status401", "http_status: 401"),
    "limited": ("http", "", "PLAIN/limited", "rate_limited: 429"),
    "elsewhere": ("http", "", "PLAIN/elsewhere", "redirect: 302 to another host"),
    "upgraded": ("http", "", "PLAIN/upgraded", "redirect: 301 to https"),
    "page": ("http", 'pointer = "/status"', "PLAIN/page", "not_json: HTML or XML"),
    "empty": ("http", 'pointer = "/status"', "PLAIN/empty", "not_json: empty"),
    "paused": ("http", 'pointer = "/status"\nexpect = "ok"', "PLAIN/paused", "not_expected"),
    "elsewhere-in-it": ("http", 'pointer = "/state"', "PLAIN/paused", "pointer_missing: /state"),
    "no-rpc": ("jsonrpc", 'method = "eth_chainId"', "PLAIN/paused", "not_understood: no JSON-RPC answer"),
    "errors": ("squid", "chain = 1", "PLAIN/errors", "graphql_errors"),
    "zipped": ("http", "", "PLAIN/zipped", "bad_encoding"),
    "brotli": ("http", "", "PLAIN/brotli", "bad_encoding"),
    "large": ("http", "", "PLAIN/large", "too_large: over 1048576 bytes"),
    "expired": ("http", 'ca_file = "CA"', "EXPIRED", "tls: expired"),
    "renamed": ("http", 'ca_file = "CA"', "RENAMED", "tls: wrong name"),
    "strange": ("http", 'ca_file = "CA"', "STRANGE", "tls: unknown authority"),
    "plain": ("http", "", "PLAIN_AS_TLS", "tls: not TLS"),
    "refused": ("http", "", "NOBODY", "refused"),
    "unnamed": ("http", "", "UNNAMED", "dns"),
    "through-nobody": ("http", 'proxy = "NOBODY"', "PLAIN/paused", "proxy: refused"),
    "silent": ("http", "", "SILENT", "timeout: first byte"),
    "dripping": ("http", "", "DRIPPING", "timeout: body"),
    "cut": ("http", "", "CUT", "broken_off"),
    "closing": ("http", "", "CLOSING", "closed"),
    "resetting": ("http", "", "RESETTING", "reset"),
    "ssh": ("http", "", "SSH", "bad_http"),
    "another-chain": ("evm", "chain = 137", "WORLD/provider/1", "wrong_chain: 1 instead of 137"),
    "unknown-method": ("jsonrpc", 'method = "eth_none"', "WORLD/bundler/1", "jsonrpc_error: -32601"),
}
# What people read of some of them.
IN_WORDS: Final = {
    "status503": "no usable answer: HTTP 503",
    "limited": "no usable answer: asked too often (429)",
    "elsewhere": "no usable answer: it redirects, which is not followed (302 to another host)",
    "expired": "not reached: no secure connection (expired)",
    "refused": "not reached: nothing listens at its address",
    "unnamed": "not reached: its name could not be resolved",
    "silent": "no complete answer in time (waiting for: first byte)",
    "closing": "no answer: the connection was closed",
    "another-chain": "a node of another chain (1 instead of 137)",
    "unknown-method": "no usable answer: JSON-RPC error -32601",
}
CONFIG: Final = """
[admin]
monitor = "ADMIN"
server = ""
[log]
level = "info"
format = "json"
[monitor]
record = "seen.jsonl"
[policy]
recheck_s = 0.5
jitter_s = 0.1
backoff_cap_s = 1
probe_timeout_s = 4
[alerts]
group_s = 1
[alerts.targets]
one = "HOOK"
other = "HOOK"
"""
# A message lists no more than 20.
RULES: Final = "".join(
    f'[[alerts.rules]]\nservices = {names}\nfor_s = 0\nremind_s = 0\ntargets = ["{target}"]\n'
    for target, names in (("one", list(WAYS)[:15]), ("other", list(WAYS)[15:]))
)


@contextmanager
def an_nginx(folder: Path, words: dict[str, str]) -> Iterator[None]:
    program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    if program is None:
        pytest.skip("needs nginx")
    (folder / "large").write_bytes(b" " * 2_000_000)
    (folder / "nginx.conf").write_text(filled(_NGINX, words))
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen([program, "-p", str(folder), "-c", "nginx.conf"], stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


def filled(text: str, words: dict[str, str]) -> str:
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, words[word])
    return text


def a_service(name: str, words: dict[str, str]) -> str:
    kind, more, place, _ = WAYS[name]
    where, slash, path = place.partition("/")
    url = f"{words[f'URL_{where}']}{slash}{path}?{CANARY}"
    headers = f'headers = {{Authorization = "{CANARY}"}}'
    return f'[[services]]\nname = "{name}"\n[[services.checks]]\nkind = "{kind}"\nurl = "{url}"\n{headers}\n{more}\n'


@pytest.mark.clause("M16")
@pytest.mark.first
async def test_log_metric_alert_board_record_and_probe_say_the_same_cause(tmp_path: Path) -> None:
    trusted, stranger = Authority(tmp_path), Authority(tmp_path)
    ports = {name: str(a_free_port()) for name in ("PLAIN", "EXPIRED", "RENAMED", "STRANGE")}
    admin, nobody = f"127.0.0.1:{a_free_port()}", f"http://127.0.0.1:{a_free_port()}"
    certificates = {
        "EXPIRED_PEM": str(trusted.vouch("127.0.0.1", days=-1)),
        "RENAMED_PEM": str(trusted.vouch("127.0.0.2", days=1)),
        "STRANGE_PEM": str(stranger.vouch("127.0.0.1", days=1)),
    }
    conversations = {
        "SILENT": silence,
        "DRIPPING": dripping(_OK, b"1", 0.2),
        "CUT": saying(_OK + b"abc"),
        "CLOSING": saying(b""),
        "RESETTING": resetting(b""),
        "SSH": saying(b"SSH-2.0-OpenSSH_9.2\r\n"),
    }
    async with AsyncExitStack() as servers:
        world = await servers.enter_async_context(a_world(tmp_path))
        urls = {name: await servers.enter_async_context(talking(each)) for name, each in conversations.items()}
        urls |= {name: f"https://127.0.0.1:{ports[name]}" for name in ("EXPIRED", "RENAMED", "STRANGE")}
        urls |= {"PLAIN": f"http://127.0.0.1:{ports['PLAIN']}", "PLAIN_AS_TLS": f"https://127.0.0.1:{ports['PLAIN']}"}
        urls |= {"NOBODY": nobody, "UNNAMED": "http://nobody.invalid", "WORLD": world.base}
        servers.enter_context(an_nginx(tmp_path, ports | certificates | {"FOLDER": str(tmp_path)}))
        hook = servers.enter_context(a_hook())
        words = {"ADMIN": admin, "HOOK": hook.address, "CA": str(trusted.path), "NOBODY": nobody}
        words |= {f"URL_{name}": url for name, url in urls.items()}
        chains = "".join(
            f'[[chains]]\nid = {chain_id}\nrpc = ["WORLD_/rpc/{chain_id}/a", "WORLD_/rpc/{chain_id}/b", '
            f'"WORLD_/rpc/{chain_id}/c"]\n'
            for chain_id in (1, 137)
        ).replace("WORLD_", world.base)
        services = "".join(filled(a_service(name, words), words) for name in WAYS)
        (tmp_path / "lookout.toml").write_text(filled(CONFIG, words) + RULES + chains + services)
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
