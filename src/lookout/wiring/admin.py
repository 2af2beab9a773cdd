"""The admin ports of the monitor and of the server."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import structlog
from prometheus_client import CollectorRegistry, disable_created_metrics

from lookout.admin import AdminError, AdminPort, AskReadiness, Reload

# They would be a second series for each counter, and nobody asks for them.
disable_created_metrics()  # type: ignore[no-untyped-call]

log = structlog.get_logger("admin")


@contextmanager
def admin_port(
    key: str, address: str, registry: CollectorRegistry, readiness: AskReadiness, reload: Reload | None = None
) -> Iterator[None]:
    """Answer on the address of this key meanwhile, unless it is "" for none."""
    if address == "":
        yield
        return
    with ExitStack() as opened:
        try:
            port = opened.enter_context(AdminPort(address, registry, readiness, reload))
        except AdminError as error:
            raise AdminError(f"{key}: {error}") from error
        log.info("admin port", address=port.address)
        yield
