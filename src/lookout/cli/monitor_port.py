"""The admin port of a running monitor, as the commands ask it."""

import http.client
import os
import socket
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from lookout.base.admin_port import CONFIG_HEADER
from lookout.base.host_port import host_and_port
from lookout.base.sockets import can_be_asked, is_unix, path_of, resolve
from lookout.cli.arguments import NOT_FINE, fail
from lookout.config.file import ConfigError, read_sending_config
from lookout.config.settings import Settings

T = TypeVar("T")


class _Error(Struct, frozen=True):
    error: str


class MonitorReply(NamedTuple):
    """What a monitor answered."""

    address: str
    http_code: int
    body: bytes

    def decode(self, kind: type[T]) -> T:
        """The body as this, or the end of the command."""
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError):
            fail(f"what answers at {self.address} is not a monitor", exit_code=NOT_FINE)

    def decode_if(self, kind: type[T], http_code: HTTPStatus, what: str) -> T:
        """The body as this, or the end of the command, which says that ``what`` was not done, and why."""
        if self.http_code != http_code:
            fail(f"what answers at {self.address} {what}: {self.decode(_Error).error}", exit_code=NOT_FINE)
        return self.decode(kind)


class MonitorPort:
    """The admin port that a configuration names; a request ends the command if nobody answers."""

    def __init__(self, config: Path, wait_s: float, no_port: str, nobody: str) -> None:
        """What to do instead: where there is no port to ask, and where nobody answers."""
        self._config = config
        self._wait_s = wait_s
        self._nobody = nobody
        self.settings = _read_settings(config)
        self.address = resolve(self.settings.admin.monitor, config.parent)
        if not can_be_asked(self.address):
            fail(f"{config}: admin.monitor: names no port to ask; {no_port}")

    def get(self, path: str) -> MonitorReply:
        return self._request("GET", path, {}, b"")

    def post(self, path: str, header: str, body: bytes = b"") -> MonitorReply:
        """``header`` is what keeps browsers from asking this."""
        meant = quote(os.fsencode(self._config.absolute()))
        headers = {header: "1", CONFIG_HEADER: meant, "Content-Length": str(len(body))}
        return self._request("POST", path, headers, body)

    def _request(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> MonitorReply:
        connection = self._connect()
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return MonitorReply(self.address, response.status, response.read())
        except TimeoutError:
            fail(f"the monitor at {self.address} did not answer within {self._wait_s:g} s", exit_code=NOT_FINE)
        except (OSError, http.client.HTTPException) as error:
            nobody = f"no monitor answers at {self.address}, which admin.monitor names: {_why(error)}"
            fail(f"{nobody}; one that stands by has no port: {self._nobody}", exit_code=NOT_FINE)
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if is_unix(self.address):
            return _UnixConnection(path_of(self.address), self._wait_s)
        host, port = host_and_port(self.address)
        return http.client.HTTPConnection(host, port, timeout=self._wait_s)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, wait_s: float) -> None:
        super().__init__("localhost", timeout=wait_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _read_settings(config: Path) -> Settings:
    try:
        return read_sending_config(config)
    except ConfigError as error:
        hint = ["this command needs the environment of the monitor"] if error.unusable_variables else []
        fail(*error.messages_with_lines, *hint)


def _why(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else "it is no HTTP"
