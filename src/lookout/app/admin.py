"""The admin ports of the monitor and of the server."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from prometheus_client import disable_created_metrics

from lookout.base.admin_port import AdminError, AdminRoutes, open_port
from lookout.base.logger import get_logger
from lookout.base.unix_socket import resolve
from lookout.config.tables import AdminTable

# They would be a second series for each counter, and nobody asks for them.
disable_created_metrics()  # type: ignore[no-untyped-call]

log = get_logger("admin")


@contextmanager
def open_admin_port(
    key: Literal["monitor", "server"], settings: AdminTable, folder: Path, routes: AdminRoutes
) -> Iterator[None]:
    """Answer on the address of this key meanwhile, unless it is "" for none. A path is relative to ``folder``."""
    address = resolve(settings.monitor if key == "monitor" else settings.server, folder)
    if address == "":
        yield
        return
    with ExitStack() as opened:
        try:
            bound = opened.enter_context(open_port(address, routes, settings.hosts))
        except AdminError as error:
            raise AdminError(f"admin.{key}: {error}") from error
        log.info("admin port", address=bound)
        yield
