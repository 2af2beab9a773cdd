"""Reads the configuration file again while the monitor runs, and applies the changes that need no restart."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from msgspec.structs import fields, replace

from lookout.app.process import configure_log, log_warnings
from lookout.base.admin_port import AdminReply, error_reply, json_reply
from lookout.base.clock import Clock
from lookout.base.concurrency import DaemonThread
from lookout.base.logger import get_logger
from lookout.base.setting_types import RESTART, has_note
from lookout.config.environment_file import Environment
from lookout.config.file import ConfigError, read_with_variables
from lookout.config.settings import Settings
from lookout.config.tables import ServerSettings
from lookout.monitor.metrics import Instruments, ReloadOutcome
from lookout.state.errors import StateError

ANSWER_WITHIN_S: Final = 30.0  # of a caller, which may wait for another reload first
_KEPT: Final = tuple(field for field in fields(Settings) if has_note(field.type, RESTART))
_READ_AT_START: Final = tuple(f"{field.encode_name}." for field in _KEPT)
# The page is the server's, but the monitor stores from it which services others run, for servers without that service.
_UNUSED_BY_MONITOR: Final = ("server.", "admin.server", "store.read_url", "edge.", "page.")
_USED_BY_BOTH: Final = ("protocol", "log.")
_OWN: Final = Environment(os.environ)

Replace = Callable[[Settings], Awaitable[None]]
"""Replaces the monitor by one with these settings. StateError, without a change, if that is impossible."""

log = get_logger()


class Reloaded(Struct, frozen=True, rename="camel"):
    """The result of a reload. It holds no value of the file, which may be a secret."""

    config: str
    outcome: ReloadOutcome
    problems: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()
    kept_variables: tuple[str, ...] = ()
    """Of the environment that the monitor was started with, which only a restart reads again."""


class Reloader:
    """The settings in force, their file, and their users: the running monitor and server."""

    def __init__(self, path: Path, settings: Settings, clock: Clock, environment: Environment = _OWN) -> None:
        self.settings = settings
        self.loaded_at = clock.now()
        self.path = path
        self.folder = path.parent  # paths in the settings are relative to it
        self.variables: Mapping[str, str] = os.environ
        self._environment = environment
        self._clock = clock
        self._last_outcome: ReloadOutcome = "applied"  # the first settings had no problem
        self._served: ServerSettings | None = None  # the settings of the running server, if there is one
        self._requested = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._replace: Replace | None = None  # while a monitor runs
        self._instruments: Instruments | None = None  # while a monitor runs

    def note_server_start(self, settings: ServerSettings | None) -> None:
        """Call before a server is started, with what it reads from the file then and keeps for life; None if that has a
        problem."""
        self._served = settings or self._served

    def request(self) -> None:
        self._requested.set()

    def is_meant(self, meant: str | None) -> bool:
        """Whether a caller named this file, percent-encoded, or none."""
        return meant is None or _is_one_file(Path(os.fsdecode(unquote_to_bytes(meant))), self.path)

    async def answer(self, _body: bytes, meant: str | None) -> AdminReply:
        """Reload, and answer with the result; refuse if ``meant`` names another file."""
        if not self.is_meant(meant):
            another = f"the monitor has another configuration, {self.path}; nothing was read again"
            return error_reply(HTTPStatus.CONFLICT, another)
        reloaded = await self.reload()
        applied = reloaded.outcome == "applied"
        return json_reply(HTTPStatus.OK if applied else HTTPStatus.UNPROCESSABLE_ENTITY, reloaded)

    async def run(self) -> None:
        while True:
            await self._requested.wait()
            self._requested.clear()
            await self.reload()

    @contextmanager
    def attached(self, replace: Replace, instruments: Instruments) -> Iterator[None]:
        """Inside the block, apply reloads to a monitor, which has the settings in force."""
        is_in_force = self._last_outcome == "applied"
        instruments.set_config_loaded(self.loaded_at, last_reload_successful=is_in_force)
        self._replace, self._instruments = replace, instruments
        try:
            yield
        finally:
            self._replace = self._instruments = None

    async def reload(self) -> Reloaded:
        """Read the file, and apply it if it has no problem."""
        async with self._one_at_a_time:
            try:
                with DaemonThread("read the configuration") as thread:  # a disk that hangs must not stop the monitor
                    variables, new, kept = await thread.call(self._read)
                self._check(new)
                reloaded = replace(await self._apply(new), kept_variables=kept)
                self.variables = variables
                if kept:
                    log.info("variables that only a restart reads again", names=kept)
            except ConfigError as error:
                reloaded = Reloaded(str(self.path), "refused", tuple(error.messages))
                for problem in reloaded.problems:
                    log.error("not reloaded; everything is as it was", problem=problem)
            except Exception as error:
                log.exception("a reload crashed")
                what = f"{self.path}: cannot be used because of a bug ({type(error).__name__}); the log has more"
                reloaded = Reloaded(str(self.path), "refused", (what,))
            self._last_outcome = reloaded.outcome
            if self._instruments is not None:
                self._instruments.count_reload(reloaded.outcome)
            return reloaded

    def _read(self) -> tuple[Mapping[str, str], Settings, tuple[str, ...]]:
        """The variables, the settings with them, and the names in the file of those that only a restart reads again."""
        of_files = self._environment._replace(own={}).read()
        variables = {**self._environment.own, **of_files}
        settings, named = read_with_variables(self.path, variables)
        return variables, settings, tuple(sorted(named - of_files.keys()))

    def _check(self, new: Settings) -> None:
        was, wanted = self.settings.history.bucket_s, new.history.bucket_s
        if was != wanted:
            what = f"the stored history has buckets of {was} s; set it back, or begin another store with {wanted}"
            raise ConfigError(self.path, [f"history.bucket_s: {what}"])

    async def _apply(self, new: Settings) -> Reloaded:
        old = self.settings
        in_force = replace(new, **{field.name: getattr(old, field.name) for field in _KEPT})
        if self._replace is not None:
            try:
                await self._replace(in_force)
            except StateError as error:
                raise ConfigError(self.path, [str(error)]) from None
        self.settings, self.loaded_at = in_force, self._clock.now()
        if self._instruments is not None:
            self._instruments.set_config_loaded(self.loaded_at, last_reload_successful=True)
        if in_force.log != old.log:
            configure_log(in_force.log)
        reloaded = compare_settings(str(self.path), old, new, self._served)
        log.info("reloaded", added=reloaded.added, removed=reloaded.removed, changed=reloaded.changed)
        for key in reloaded.needs_restart:
            log.warning("not applied: needs a restart", key=key)
        log_warnings(in_force)
        return reloaded


def _is_one_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return one == other


def compare_settings(config: str, old: Settings, new: Settings, served: ServerSettings | None) -> Reloaded:
    """What a reload changes, and what needs a restart. ``served`` are the settings of a server beside the monitor."""
    was, now = ({**_list_rows(settings), **dict(_list_keys(settings))} for settings in (old, new))
    differing = [name for name in now if name in was and now[name] != was[name]]
    changed = [name for name in differing if not name.startswith(_UNUSED_BY_MONITOR)]
    needs_restart = [name for name in changed if name.startswith(_READ_AT_START)]
    of_server = [] if served is None else [key for key, value in _list_keys(served) if now[key] != value]
    needs_restart += [key for key in of_server if key.startswith(_UNUSED_BY_MONITOR)]
    needs_restart += [f"{key} of the server" for key in of_server if key.startswith(_USED_BY_BOTH)]
    return Reloaded(
        config,
        "applied",
        added=tuple(name for name in now if name not in was),
        removed=tuple(name for name in was if name not in now),
        changed=tuple(name for name in changed if name not in needs_restart),
        needs_restart=tuple(needs_restart),
    )


def _list_rows(settings: Settings) -> dict[str, object]:
    """What is watched, by its name for people: checks with the settings and the words of each, and chains."""
    words = {own.name: (own.title, own.effect) for own in settings.services}
    checks = {check.name: (table, words.get(check.service)) for check, table in settings.sources_by_check().items()}
    return checks | {f"chain {chain.id}": chain for chain in settings.chains}


def _list_keys(table: Struct, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every other key with its value."""
    for field in fields(table):
        key, value = f"{prefix}{field.encode_name}", getattr(table, field.name)
        if isinstance(value, Struct):
            yield from _list_keys(value, f"{key}.")
        elif key not in ("chains", "sources", "services"):
            yield key, value
