"""Runs a server: it listens, answers, and has an admin port."""

import asyncio
import socket
from contextlib import closing
from importlib import import_module
from pathlib import Path

from lookout.app.process import allow_many_connections, run_until_stopped
from lookout.base.logger import get_logger
from lookout.base.sockets import listen_for, resolve
from lookout.base.url import format_host_port
from lookout.config.tables import ServerSettings
from lookout.server.assembly import THIS_MACHINE, Machine, Server, build_server

log = get_logger()


def run_server(settings: ServerSettings, folder: Path, machine: Machine = THIS_MACHINE) -> None:
    """Answer requests until a signal stops the command; paths in the settings are relative to ``folder``. StoreError if
    the store's address cannot be used, ListenError if listening on an address fails."""
    allow_many_connections()
    server = build_server(settings, folder, machine)
    admin_address = resolve(settings.admin.server, folder)
    with closing(listen_for("server.listen", settings.server.listen)) as listener:
        admins = listen_for("admin.server", admin_address) if admin_address else None
        run_until_stopped(_serve(server, settings, listener, admins, admin_address))
    log.info("stopped")


async def _serve(
    server: Server, settings: ServerSettings, listener: socket.socket, admins: socket.socket | None, admin_address: str
) -> None:
    address = format_host_port(*listener.getsockname()[:2])
    async with server.running(listener):
        log.info("serving", address=address)
        await asyncio.to_thread(import_module, "lookout.app.admin")  # the first answers do not wait for its imports
        from lookout.app.admin import open_server_port

        async with open_server_port(admins, admin_address, settings.admin, server):
            await asyncio.Event().wait()
