"""Servers behind nginx and HAProxy: several of them, and requests with bodies, which nobody reads (RFC 9112, 9.6)."""

import getpass
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from tests.cases import text_of
from tests.commands import a_command
from tests.integration.edged import an_edge, needs_varnish
from tests.integration.raw import RawServer, a_raw_server, a_request, parsed, store
from tests.integration.served import LIVE, Server, a_free_port, wait_until_it_answers, write_config
from tests.wait import until

ROOT: Final = Path(__file__).parent.parent.parent
SCALE: Final = ROOT / "docs" / "scale.md"
NGINX: Final = shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin")
HAPROXY: Final = shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin:/usr/bin")
needs_nginx: Final = pytest.mark.skipif(NGINX is None, reason="needs nginx")
AROUND: Final = text_of("settings/nginx.conf")
# What somebody writes who never met a body: nginx asks no server for ten seconds after one failure.
PLAIN: Final = """\
upstream lookout {{ server 127.0.0.1:{server}; server 127.0.0.1:{server}; }}
server {{ listen {port}; client_max_body_size 0; location / {{ proxy_pass http://lookout; }} }}
"""
BODY: Final = b"b" * 900_000


class Proxy:
    """What stands before a server. Each request has a connection of its own."""

    def __init__(self, port: int) -> None:
        self.port = port

    def code(self, method: str = "GET", body: bytes = b"", peer: str = "127.0.0.1") -> int:
        """The code of the answer; 0 if there is none."""
        head = a_request(method, LIVE, *[f"Content-Length: {len(body)}"] * bool(body))
        with socket.create_connection(("127.0.0.1", self.port), timeout=60, source_address=(peer, 0)) as connection:
            with suppress(ConnectionError):  # it may have answered before the last byte
                connection.sendall(head + body)
            said = b""
            with suppress(ConnectionError):
                said = b"".join(iter(lambda: connection.recv(65_536), b""))
        return parsed(said).http_code if said else 0


@contextmanager
def a_proxy(folder: Path, port: int, *command: str | Path) -> Iterator[Proxy]:
    with (folder / "proxy.log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:

            def listens() -> bool:
                assert process.poll() is None, (folder / "proxy.log").read_text()
                with socket.socket() as trial:
                    return trial.connect_ex(("127.0.0.1", port)) == 0

            until(listens, "the proxy listens", 30)
            yield Proxy(port)
        finally:
            process.terminate()
            process.wait()


@contextmanager
def an_nginx(folder: Path, port: int, http: str) -> Iterator[Proxy]:
    config = folder / "nginx.conf"
    config.write_text(AROUND.format(user=getpass.getuser(), folder=folder, http=http))
    with a_proxy(folder, port, NGINX or "", "-c", config) as proxy:
        yield proxy


def nginx_of_the_documents(port: int, servers: tuple[int, int]) -> str:
    """As it is printed, with other ports."""
    text: str
    (text,) = re.findall(r"```nginx\n(.*?)```", SCALE.read_text(encoding="utf-8"), flags=re.DOTALL)
    for printed, real in (
        ("listen 80;", f"listen {port};"),
        (":8081 ", f":{servers[0]} "),
        (":8082 ", f":{servers[1]} "),
    ):
        assert text.count(printed) == 1
        text = text.replace(printed, real)
    return text


def ask_beside(proxy: Proxy, times: int, body: bytes) -> tuple[Counter[int], Counter[int]]:
    """The codes of so many requests with bodies, and of readers beside them."""
    with ThreadPoolExecutor(12) as pool:
        sent = [pool.submit(proxy.code, "POST", body) for _ in range(times)]
        read = [pool.submit(proxy.code, "GET", b"", "127.0.0.2") for _ in range(148)]
        return tuple(Counter(each.result() for each in asked) for asked in (sent, read))  # type: ignore[return-value]


def filled(folder: Path) -> Path:
    store(folder, live=b'{"live":1}', history=b'{"history":1}')
    return folder


@needs_nginx
@pytest.mark.clause("A16")
def test_a_body_that_nobody_reads_is_no_502_and_takes_the_server_from_no_reader(tmp_path: Path) -> None:
    with a_raw_server(filled(tmp_path)) as server:
        port = a_free_port()
        with an_nginx(tmp_path, port, PLAIN.format(server=server.port, port=port)) as nginx:
            assert ask_beside(nginx, 120, BODY) == ({405: 120}, {200: 148})


@needs_nginx
@pytest.mark.clause("E2", "E6")
def test_several_servers_behind_the_nginx_of_the_documents_are_one_to_each_caller(tmp_path: Path) -> None:
    table = 'rate_limit_per_minute = 5\ntrusted_proxies = ["127.0.0.1"]\n'
    with a_raw_server(filled(tmp_path), server=table) as one:
        other, port = RawServer(a_free_port(), one.process, tmp_path, admin_port=a_free_port()), a_free_port()
        config = write_config(tmp_path, one.port, server=table)
        addresses = ("--listen", f"127.0.0.1:{other.port}", "--admin", f"127.0.0.1:{other.admin_port}")
        with (
            a_command(tmp_path, "serve", "-c", config, *addresses) as process,
            an_nginx(tmp_path, port, nginx_of_the_documents(port, (one.port, other.port))) as nginx,
        ):
            wait_until_it_answers(Server("127.0.0.1", other.port), process, tmp_path)
            for number in range(2, 12):
                codes = [nginx.code(peer=f"127.0.0.{number}") for _ in range(7)]
                assert codes == [200] * 5 + [429] * 2
            assert {nginx.code("POST", BODY[:size], "127.0.0.99") for size in (1_100, 30_000, 900_000)} == {413}


@needs_nginx
@needs_varnish
def test_a_body_is_refused_before_the_edge(tmp_path: Path) -> None:
    with a_raw_server(filled(tmp_path)) as server, an_edge(tmp_path, server.port) as edge:
        port = a_free_port()
        with an_nginx(tmp_path, port, nginx_of_the_documents(port, (edge.port, edge.port))) as nginx:
            for size in (20_000, 40_000):
                assert ask_beside(nginx, 60, BODY[:size]) == ({413: 60}, {200: 148})
            assert ask_beside(nginx, 60, BODY[:1_000]) == ({413: 60}, {200: 148}), "the edge itself refuses a small one"


@pytest.mark.skipif(HAPROXY is None, reason="needs haproxy")
def test_the_haproxy_of_the_documents_refuses_a_body(tmp_path: Path) -> None:
    with a_raw_server(filled(tmp_path)) as server:
        port = a_free_port()
        text = re.sub(r"bind .*", f"bind 127.0.0.1:{port}", (ROOT / "edge" / "haproxy.cfg").read_text(encoding="utf-8"))
        config = tmp_path / "haproxy.cfg"
        config.write_text(text.replace("127.0.0.1:6081", f"127.0.0.1:{server.port}"))
        with a_proxy(tmp_path, port, HAPROXY or "", "-f", config) as haproxy:
            for size in (10, 30_000):
                assert ask_beside(haproxy, 60, BODY[:size]) == ({413: 60}, {200: 148})
