"""Reads the configuration file again while the monitor runs, and applies what can be applied."""

import asyncio
import concurrent.futures
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote_to_bytes

from msgspec import Struct
from msgspec.structs import fields, replace

from lookout.app.log import configure_log
from lookout.app.record import RecordTakenError
from lookout.base.admin_port import AdminReply, error_reply, json_reply
from lookout.base.clock import Clock
from lookout.base.concurrency import DaemonThread
from lookout.base.logger import get_logger
from lookout.base.pieces import StateError
from lookout.config.file import ConfigError, read_sending_config
from lookout.config.server_settings import ServerSettings
from lookout.config.settings import Settings
from lookout.config.tables import ChainTable
from lookout.core.model import Check
from lookout.core.services import SERVICES
from lookout.monitor.metrics import Instruments, ReloadOutcome
from lookout.protocols.registry import has_one_table

READ_WITHIN_S: Final = 10.0  # a file on a disk that hangs, or a pipe
ANSWER_WITHIN_S: Final = 30.0  # to one who asked while another reload was under way
_WATCHED: Final = ("chains", "sources", "services")
# Any other table, also one that is yet to come, needs a restart. The page's is the server's; of it the monitor stores
# which services others run, for servers that do not know a service. So is the protocol, which alerts may name.
_APPLIED: Final = frozenset((*_WATCHED, "protocol", "log", "monitor", "policy", "history", "page", "alerts", "ping"))
_UNUSED_BY_MONITOR: Final = frozenset(("server", "admin.server", "store.read_url", "edge", "page"))
_UNUSED: Final = frozenset(("edge", "page", "protocol"))

log = get_logger("reload")


class Reloaded(Struct, frozen=True, rename="camel"):
    """What came of reading a configuration file again; it never has a value out of it, which may be a secret."""

    config: str
    outcome: ReloadOutcome
    problems: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    needs_restart: tuple[str, ...] = ()


class ReloadableMonitor(Protocol):
    """A monitor that runs."""

    instruments: Instruments

    async def replace(self, new: Settings, /) -> None:
        """Go on with these settings. RecordTakenError or StateError if that cannot be: then nothing changes."""


class Reloader:
    """The settings in force, the file that they come from, and what uses them: the monitor and the server that run."""

    def __init__(self, path: Path, settings: Settings, clock: Clock) -> None:
        self.settings = settings
        self.loaded_at = clock.now()
        self.path = path
        self._clock = clock
        self._last_outcome: ReloadOutcome = "applied"  # the settings at the start were read without a problem
        self._served: Settings | None = None  # what the server was started with, if there is one
        self._requested = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None  # while it runs
        self._monitor: ReloadableMonitor | None = None  # while one runs

    def for_server(self) -> ServerSettings:
        """The settings for a server that is started now, and keeps them as long as it lives."""
        self._served = self.settings
        return self.settings.for_server()

    def request(self) -> None:
        """Request a reload, on the event loop, without waiting for it."""
        self._requested.set()

    def is_meant(self, meant: str | None) -> bool:
        """Whether this file is the one that a caller named, percent-encoded, or none was."""
        return meant is None or _is_one_file(Path(os.fsdecode(unquote_to_bytes(meant))), self.path)

    def answer(self, meant: str | None = None) -> AdminReply:
        """Reload, and answer with what came of it, unless another file is meant, percent-encoded. For a thread beside
        the event loop."""
        if not self.is_meant(meant):
            another = f"the monitor has another configuration, {self.path}; nothing was read again"
            return error_reply(HTTPStatus.CONFLICT, another)
        if self._loop is None:
            return error_reply(HTTPStatus.SERVICE_UNAVAILABLE, "the monitor is not ready to reload")
        reload = asyncio.run_coroutine_threadsafe(self.reload(), self._loop)
        try:
            reloaded = reload.result(ANSWER_WITHIN_S)
        except (concurrent.futures.CancelledError, TimeoutError):
            reload.cancel()
            return error_reply(HTTPStatus.SERVICE_UNAVAILABLE, "the monitor did not reload in time, or is ending")
        applied = reloaded.outcome == "applied"
        return json_reply(HTTPStatus.OK if applied else HTTPStatus.UNPROCESSABLE_ENTITY, reloaded)

    async def run(self) -> None:
        """Reload whenever it is requested, until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self._requested.wait()
            self._requested.clear()
            try:
                await self.reload()
            except Exception:
                log.exception("a reload died of a bug")

    @contextmanager
    def attached(self, monitor: ReloadableMonitor) -> Iterator[None]:
        """Apply reloads to this monitor meanwhile; it has the settings in force."""
        is_in_force = self._last_outcome == "applied"
        monitor.instruments.set_config_loaded(self.loaded_at, last_reload_successful=is_in_force)
        self._monitor = monitor
        try:
            yield
        finally:
            self._monitor = None

    async def reload(self) -> Reloaded:
        """Read the file, and apply it if nothing is wrong with it."""
        async with self._one_at_a_time:
            try:
                new = await self._read()
                self._check_buckets(new)
                self._check_that_something_is_watched(new)
                reloaded = await self._apply(new)
            except ConfigError as error:
                reloaded = Reloaded(str(self.path), "refused", tuple(error.messages))
                for problem in reloaded.problems:
                    log.error("not reloaded; everything is as it was", problem=problem)
            except Exception as error:
                log.exception("a reload died of a bug")
                what = f"{self.path}: cannot be used because of a bug ({type(error).__name__}); the log has more"
                reloaded = Reloaded(str(self.path), "refused", (what,))
            self._last_outcome = reloaded.outcome
            if self._monitor is not None:
                self._monitor.instruments.count_reload(reloaded.outcome)
            return reloaded

    async def _read(self) -> Settings:
        with DaemonThread("read the configuration") as thread:
            try:
                async with asyncio.timeout(READ_WITHIN_S):
                    return await thread.call(partial(read_sending_config, self.path))
            except TimeoutError:
                raise ConfigError(self.path, [f"cannot be read within {READ_WITHIN_S:g} s"]) from None

    def _check_buckets(self, new: Settings) -> None:
        was, wanted = self.settings.history.bucket_s, new.history.bucket_s
        if was != wanted:
            what = f"the stored history has buckets of {was} s; set it back, or begin another store with {wanted}"
            raise ConfigError(self.path, [f"history.bucket_s: {what}"])

    def _check_that_something_is_watched(self, new: Settings) -> None:
        """A file that a full disk left empty is valid, and would empty the report."""
        if self.settings.sources_by_check() and not new.sources_by_check():
            raise ConfigError(self.path, ["names nothing to watch; restart the monitor if that is meant"])

    async def _apply(self, new: Settings) -> Reloaded:
        old = self.settings
        in_force = replace(
            new, **{each.name: getattr(old, each.name) for each in fields(Settings) if each.encode_name not in _APPLIED}
        )
        if self._monitor is not None:
            try:
                await self._monitor.replace(in_force)
            except (RecordTakenError, StateError) as error:
                raise ConfigError(self.path, [str(error)]) from None
        self.settings, self.loaded_at = in_force, self._clock.now()
        if self._monitor is not None:
            self._monitor.instruments.set_config_loaded(self.loaded_at, last_reload_successful=True)
        if in_force.log != old.log:
            configure_log(in_force.log)
        reloaded = compare_settings(str(self.path), old, new, self._served)
        log.info("reloaded", added=reloaded.added, removed=reloaded.removed, changed=reloaded.changed)
        for key in reloaded.needs_restart:
            log.warning("not applied: needs a restart", key=key)
        log_warnings(in_force)
        return reloaded


def log_warnings(settings: Settings) -> None:
    for doubt in settings.warnings():
        log.warning("the configuration is allowed, but may not be what is wanted", doubt=str(doubt))


def _is_one_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # ValueError: a NUL, which no path has
        return one == other


def compare_settings(config: str, old: Settings, new: Settings, served: Settings | None) -> Reloaded:
    """What a reload changes, and what only a restart would. ``served`` is what a server beside the monitor has."""
    others = _UNUSED_BY_MONITOR if served is None else _UNUSED
    keys = [key for key in _changed_keys(old, new) if not others & {key, key.partition(".")[0]}]
    beside = new if served is None else served
    checks, checks_before = new.sources_by_check(), old.sources_by_check()
    rpc, rpc_before = ({chain.id: chain for chain in settings.chains} for settings in (new, old))
    both = [check for check in checks if check in checks_before]
    sources = (_source(check) for check in both if checks[check] != checks_before[check])
    return Reloaded(
        config,
        "applied",
        added=(*_named(checks.keys() - checks_before.keys()), *_chains(rpc.keys() - rpc_before.keys())),
        removed=(*_named(checks_before.keys() - checks.keys()), *_chains(rpc_before.keys() - rpc.keys())),
        changed=(
            *dict.fromkeys(sources),
            *_titles_changed(old, new),
            *(what for each in rpc if each in rpc_before for what in _differences(rpc_before[each], rpc[each])),
            *(key for key in keys if key.partition(".")[0] in _APPLIED),
            *_names_in_messages_changed(old, new, with_server=served is not None),
        ),
        needs_restart=(
            *(("protocol",) if beside.protocol != new.protocol else ()),
            *(key for key in keys if key.partition(".")[0] not in _APPLIED),
            *(f"{key} of the server" for key in _changed_keys(beside.log, new.log, "log.")),
            *_changed_keys(beside.page, new.page, "page."),
        ),
    )


def _changed_keys(old: Struct, new: Struct, prefix: str = "") -> Iterator[str]:
    """The keys that differ, but for those of what is watched."""
    for each in fields(old):
        was, now = getattr(old, each.name), getattr(new, each.name)
        if was == now or (not prefix and each.encode_name in _WATCHED):
            continue
        if isinstance(was, Struct) and isinstance(now, Struct):
            yield from _changed_keys(was, now, f"{prefix}{each.encode_name}.")
        else:
            yield f"{prefix}{each.encode_name}"


def _named(checks: set[Check]) -> list[str]:
    return [_name(check) for check in sorted(checks, key=lambda check: (check.service, check.chain_id or 0))]


def _name(check: Check) -> str:
    """A service of the operator's own may be called chain."""
    return f"service {check.name}" if check.service == "chain" else check.name


def _titles_changed(old: Settings, new: Settings) -> Iterator[str]:
    before, after = ({own.name: own.title for own in settings.services} for settings in (old, new))
    both = [name for name in after if name in before]
    yield from (f"title of {name}" for name in both if before[name] != after[name])
    if both != [name for name in before if name in after]:
        yield "order of services"


def _names_in_messages_changed(old: Settings, new: Settings, *, with_server: bool) -> Iterator[str]:
    if new.alerts.targets:
        if with_server and old.protocol != new.protocol and not new.page.title:
            yield "protocol in alerts"
        keys = ("title", "operator")
        yield from (f"page.{key} in alerts" for key in keys if getattr(old.page, key) != getattr(new.page, key))


def _source(check: Check) -> str:
    """What has one table is named by it, for all of its chains."""
    is_own = check.service not in SERVICES
    return _name(check) if is_own or not has_one_table(SERVICES[check.service]) else check.service


def _chains(chain_ids: set[int]) -> list[str]:
    return [f"chain {chain_id}" for chain_id in sorted(chain_ids)]


def _differences(old: ChainTable, new: ChainTable) -> list[str]:
    keys = ("name", "block_time_s", "rpc", "test_network")
    return [f"{key} of chain {new.id}" for key in keys if getattr(old, key) != getattr(new, key)]
