"""``lookout --env-file``: variables that a command gets from files, as a unit does from systemd."""

import os
from collections.abc import Sequence
from pathlib import Path

from lookout.cli.arguments import fail
from lookout.config.environment_file import read_environment_file
from lookout.config.file import ConfigError


def set_variables(files: Sequence[Path]) -> None:
    """A later file counts more than an earlier one, and each more than what is set already. All that is wrong with any
    of them ends the command."""
    messages: list[str] = []
    for path in files:
        try:
            os.environ.update(read_environment_file(path))
        except ConfigError as error:
            messages += error.messages
    if messages:
        fail(*messages)
