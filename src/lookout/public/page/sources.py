"""What browsers need not load: comments and indentation, which are a quarter of what is sent."""

import re
from typing import Final

# Only what stands on lines of its own: in a string or a pattern there may be anything else.
_COMMENT: Final = re.compile(r"^[ \t]*(?:/\*.*?\*/[ \t]*|//[^\n]*)\n", re.DOTALL | re.MULTILINE)
_INDENTATION: Final = re.compile(r"^\s+", re.MULTILINE)


def strip_source(source: str) -> str:
    """A script or stylesheet without them; a text of several lines in it would not survive that."""
    return _INDENTATION.sub("", _COMMENT.sub("", source))
