"""What a process that is to have no secrets gets of the environment of who starts it."""

import re
from collections.abc import Mapping
from typing import Final

# Where programs, libraries and files are, the language, the time zone, and what Python and libraries are set up by.
_ORDINARY: Final = re.compile(
    r"PATH|HOME|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|NO_COLOR|FORCE_COLOR"
    r"|PYTHON[A-Z0-9]+|LD_[A-Z_]+|MALLOC_[A-Z_]+|SSL_CERT_(FILE|DIR)|FAKETIME\w*"
)


def pick_ordinary(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that any program needs; an operator's own, which may be secrets, are not among them."""
    return {name: value for name, value in environment.items() if _ORDINARY.fullmatch(name)}
