"""``lookout reload``: makes a running monitor read its configuration again."""

import http.client
import os
import socket
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

import click
import msgspec
from msgspec import Struct

from lookout.app.reloader import ANSWER_WITHIN_S, Reloaded
from lookout.base.admin_port import CONFIG_HEADER, RELOAD_HEADER
from lookout.base.host_port import host_and_port
from lookout.base.unix_socket import is_unix, path_of, resolve
from lookout.cli.arguments import NOT_FINE, config_option, fail
from lookout.config.file import ConfigError, read_sending_config
from lookout.config.settings import Settings

_WAIT_S: Final = ANSWER_WITHIN_S + 5

T = TypeVar("T")


class _Error(Struct, frozen=True):
    error: str


@click.command()
@config_option
def reload(config: Path) -> None:
    """Make the running monitor read its configuration again, without a gap, and show what changed.

    The file is checked first, and has to name the monitor's admin port. Exit code 1 if the monitor did not reload it.
    """
    address = resolve(_settings_of(config).admin.monitor, config.parent)
    if address == "" or (address.endswith(":0") and not is_unix(address)):
        fail(f"{config}: admin.monitor: names no port to ask; send the monitor SIGHUP instead")
    reloaded = _request_reload(address, config)
    if reloaded.outcome == "refused":
        fail(*reloaded.problems, exit_code=NOT_FINE)
    _show(config, reloaded)


def _settings_of(config: Path) -> Settings:
    try:
        return read_sending_config(config)
    except ConfigError as error:
        unset = any("the environment variable" in problem for problem in error.problems)
        hint = ("this command needs the environment of the monitor; or send the monitor SIGHUP",) if unset else ()
        fail(*error.located, *hint)


def _request_reload(address: str, config: Path) -> Reloaded:
    connection = _connection(address)
    try:
        meant = {RELOAD_HEADER: "1", CONFIG_HEADER: quote(os.fsencode(config.absolute())), "Content-Length": "0"}
        connection.request("POST", "/reload", headers=meant)
        response = connection.getresponse()
        body = response.read()
    except TimeoutError:
        fail(f"the monitor at {address} did not answer within {_WAIT_S:g} s", exit_code=NOT_FINE)
    except (OSError, http.client.HTTPException) as error:
        fail(f"no monitor answers at {address}, which admin.monitor names: {_why(error)}", exit_code=NOT_FINE)
    finally:
        connection.close()
    if response.status not in (HTTPStatus.OK, HTTPStatus.UNPROCESSABLE_ENTITY):
        fail(f"what answers at {address} did not reload: {_decode(address, body, _Error).error}", exit_code=NOT_FINE)
    return _decode(address, body, Reloaded)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_WAIT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(_WAIT_S)
        self.sock.connect(self._path)


def _connection(address: str) -> http.client.HTTPConnection:
    if is_unix(address):
        return _UnixConnection(path_of(address))
    host, port = host_and_port(address)
    return http.client.HTTPConnection(host, port, timeout=_WAIT_S)


def _decode(address: str, body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        fail(f"what answers at {address} is not a monitor", exit_code=NOT_FINE)


def _show(config: Path, reloaded: Reloaded) -> None:
    lines = {
        "added": reloaded.added,
        "removed": reloaded.removed,
        "changed": reloaded.changed,
        "needs a restart": reloaded.needs_restart,
    }
    changes = [f"  {what}: {', '.join(names)}" for what, names in lines.items() if names]
    click.echo("\n".join([f"reloaded {config}" + ("" if changes else ": nothing changed"), *changes]))


def _why(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else "it is no HTTP"
