"""The environment variables that a configuration file names as ``${NAME}``."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_SHORTEST_SECRET: Final = 4  # what is shorter than a word would be found in other words
_SHOWN_AT_LEAST: Final = 40  # of a value that is cut


class Variables:
    """Puts variables into values, and hides them again in what is printed."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.unusable: set[str] = set()
        """Those that were looked for, and are not set, or not valid UTF-8."""
        self._environment = environment
        self._filled_in: dict[str, str] = {}

    def find_mistakes(self, names: set[str]) -> dict[str, str]:
        """What is wrong with these variables, by their names."""
        mistakes = {name: what for name in sorted(names) if (what := self._find_mistake(name)) is not None}
        self.unusable |= mistakes.keys()
        return mistakes

    def fill_in(self, value: Any) -> Any:
        """Put variables in the place of ``${NAME}``; all of them have to be usable."""
        if isinstance(value, str):
            self._filled_in |= {name: self._environment[name] for name in _VARIABLE.findall(value)}
            return _VARIABLE.sub(lambda match: self._filled_in[match[1]], value)
        if isinstance(value, list):
            return [self.fill_in(entry) for entry in value]
        if isinstance(value, dict):
            return {name: self.fill_in(entry) for name, entry in value.items()}
        return value

    def hide(self, text: str) -> str:
        """The text with a variable's name wherever its value stands, also if that is quoted, or long and was cut."""
        for name, value in self._filled_in.items():
            for form in {value, json.dumps(value)[1:-1]}:
                begin = form[:_SHOWN_AT_LEAST]
                at = text.find(begin) if len(form) >= _SHORTEST_SECRET else -1
                while at >= 0:
                    shown = f"${{{name}}}"
                    length = max(n for n in range(len(form) + 1) if text.startswith(form[:n], at))
                    text = text[:at] + shown + text[at + length :]
                    at = text.find(begin, at + len(shown))
        return text

    def _find_mistake(self, name: str) -> str | None:
        value = self._environment.get(name)
        if value is None:
            return "is not set"
        try:
            value.encode()
        except UnicodeEncodeError:  # bytes that Python keeps as surrogates; an address would be sent without them
            return "is not valid UTF-8"
        return None


def find_variables(value: Any) -> Iterator[str]:
    """The names of those in a value, and in the values in it."""
    if isinstance(value, str):
        yield from _VARIABLE.findall(value)
    elif isinstance(value, list | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from find_variables(entry)
