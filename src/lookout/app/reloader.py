"""Reads the configuration file again while the monitor runs, and applies the changes that need no restart."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from msgspec.structs import fields, replace

from lookout.app.process import configure_log, log_warnings
from lookout.base.admin_port import AdminReply, error_reply, json_reply
from lookout.base.clock import Clock
from lookout.base.concurrency import DaemonThread
from lookout.base.logger import get_logger
from lookout.config.environment_file import Environment
from lookout.config.file import ConfigError, read_with_variables
from lookout.config.settings import Settings
from lookout.config.tables import ServerSettings
from lookout.core.model import Check
from lookout.core.services import SERVICES
from lookout.monitor.metrics import Instruments, ReloadOutcome
from lookout.protocols.registry import has_one_table
from lookout.state.errors import StateError

ANSWER_WITHIN_S: Final = 30.0  # of a caller, which may wait for another reload first
_WATCHED: Final = ("chains", "sources", "services")
# The page is the server's, but the monitor stores from it which services others run, for servers without that service.
# The protocol is the server's too, and alerts may name it.
_APPLIED: Final = Settings.applied_by_reload()
_UNUSED_BY_MONITOR: Final = frozenset(("server", "admin.server", "store.read_url", "edge", "page"))
_SERVERS_OWN: Final = _UNUSED_BY_MONITOR | {"protocol"}
_OWN: Final = Environment(os.environ)
_Key = TypeVar("_Key")

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
        in_force = replace(
            new,
            **{field.name: getattr(old, field.name) for field in fields(Settings) if field.encode_name not in _APPLIED},
        )
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
    unused = _UNUSED_BY_MONITOR if served is None else _SERVERS_OWN
    keys = [key for key in _changed_keys(old, new) if not unused & {key, key.partition(".")[0]}]
    checks, checks_before = new.sources_by_check(), old.sources_by_check()
    chains, chains_before = ({chain.id: chain for chain in settings.chains} for settings in (new, old))
    return Reloaded(
        config,
        "applied",
        added=(*_name_all(checks.keys() - checks_before.keys()), *_name_chains(chains.keys() - chains_before.keys())),
        removed=(*_name_all(checks_before.keys() - checks.keys()), *_name_chains(chains_before.keys() - chains.keys())),
        changed=(
            *dict.fromkeys(_name_source(check) for check in _find_changed(checks_before, checks)),
            *_name_chains(_find_changed(chains_before, chains)),
            *(("services",) if _titles(old, new) != _titles(new, old) else ()),
            *(key for key in keys if key.partition(".")[0] in _APPLIED),
        ),
        needs_restart=(
            *(key for key in keys if key.partition(".")[0] not in _APPLIED),
            *(() if served is None else _find_servers_keys(served, new)),
        ),
    )


def _changed_keys(old: Struct, new: Struct, prefix: str = "") -> Iterator[str]:
    for field in fields(old):
        was, now = getattr(old, field.name), getattr(new, field.name)
        if was == now or (not prefix and field.encode_name in _WATCHED):
            continue
        if isinstance(was, Struct) and isinstance(now, Struct):
            yield from _changed_keys(was, now, f"{prefix}{field.encode_name}.")
        else:
            yield f"{prefix}{field.encode_name}"


def _find_servers_keys(served: ServerSettings, new: Settings) -> Iterator[str]:
    for key in _changed_keys(served, new):
        table = key.partition(".")[0]
        if _SERVERS_OWN & {key, table}:
            yield key
        elif table == "log":
            yield f"{key} of the server"


def _find_changed(before: Mapping[_Key, object], after: Mapping[_Key, object]) -> list[_Key]:
    return [key for key in after if key in before and after[key] != before[key]]


def _titles(settings: Settings, other: Settings) -> list[tuple[str, str]]:
    """The titles of own services that both settings have."""
    names = {own.name for own in other.services}
    return [(own.name, own.title) for own in settings.services if own.name in names]


def _name_all(checks: Iterable[Check]) -> list[str]:
    return [check.name for check in sorted(checks, key=lambda check: (check.service, check.chain_id or 0))]


def _name_source(check: Check) -> str:
    """A service with one table for all chains is named without a chain."""
    is_own = check.service not in SERVICES
    return check.name if is_own or not has_one_table(SERVICES[check.service]) else check.service


def _name_chains(chain_ids: Iterable[int]) -> list[str]:
    return [f"chain {chain_id}" for chain_id in sorted(chain_ids)]
