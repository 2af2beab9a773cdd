"""``lookout reload``: makes a running monitor read its configuration again."""

from http import HTTPStatus
from pathlib import Path
from typing import Final

import click

from lookout.app.reloader import ANSWER_WITHIN_S, Reloaded
from lookout.base.admin_port import RELOAD_HEADER
from lookout.cli.arguments import NOT_FINE, config_option, fail
from lookout.cli.monitor_port import MonitorPort

_WAIT_S: Final = ANSWER_WITHIN_S + 5
_INSTEAD: Final = "send the monitor SIGHUP instead"


@click.command()
@config_option
def reload(config: Path) -> None:
    """Make the running monitor read its configuration again, without a gap, and show what changed.

    The file is checked first, and has to name the monitor's admin port. Exit code 1 if the monitor did not reload it.
    """
    port = MonitorPort(config, _WAIT_S, _INSTEAD, nobody=_INSTEAD)
    reply = port.post("/reload", RELOAD_HEADER)
    if reply.http_code == HTTPStatus.UNPROCESSABLE_ENTITY:
        fail(*reply.decode(Reloaded).problems, exit_code=NOT_FINE)
    _show(config, reply.decode_if(Reloaded, HTTPStatus.OK, "did not reload"))


def _show(config: Path, reloaded: Reloaded) -> None:
    lines = {
        "added": reloaded.added,
        "removed": reloaded.removed,
        "changed": reloaded.changed,
        "needs a restart": reloaded.needs_restart,
    }
    changes = [f"  {what}: {', '.join(names)}" for what, names in lines.items() if names]
    click.echo("\n".join([f"reloaded {config}" + ("" if changes else ": nothing changed"), *changes]))
