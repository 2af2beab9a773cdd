"""Figures as lines of a table that is 80 columns wide, and as JSON."""

import json
import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from bench.runner import Broken, Measured

WIDTH = 80
_COLUMNS = (("measured", 29), ("figure", 24), ("ratio", 5), ("target", 12), ("", 6))


def heading() -> str:
    return f"{_row([name for name, _ in _COLUMNS])}\n{'-' * WIDTH}"


def lines(result: Measured | Broken) -> list[str]:
    """As many as it needs."""
    if isinstance(result, Broken):
        return textwrap.wrap(f"{result.part} broke: {result.reason}", WIDTH, subsequent_indent="  ")
    figure = result.figure
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
    verdict = "" if not figure.target else "missed" if figure.missed else "met"
    value = f"{figure.figure}; {figure.against}" if figure.against else figure.figure
    texts = (figure.measured, value, ratio, figure.target, verdict)
    cells = [textwrap.wrap(text, width) for text, (_, width) in zip(texts, _COLUMNS, strict=True)]
    return [_row(row) for row in zip_longest(*cells, fillvalue="")]


def summary(results: Sequence[Measured | Broken]) -> str:
    broken = [result.part for result in results if isinstance(result, Broken)]
    held = [result.figure for result in results if isinstance(result, Measured) and result.figure.target]
    text = f"{sum(not figure.missed for figure in held)} of {len(held)} targets met"
    return f"{text}; broken: {', '.join(broken)}" if broken else text


def as_json(results: Sequence[Measured | Broken]) -> str:
    figures = [
        {
            "part": result.part,
            "measured": result.figure.measured,
            "figure": result.figure.figure,
            "against": result.figure.against or None,
            "ratio": result.figure.ratio,
            "target": result.figure.target or None,
            "met": not result.figure.missed if result.figure.target else None,
        }
        for result in results
        if isinstance(result, Measured)
    ]
    broken = [result._asdict() for result in results if isinstance(result, Broken)]
    return json.dumps({"figures": figures, "broken": broken}, indent=2)


def _row(cells: Sequence[str]) -> str:
    return " ".join(text.ljust(width) for text, (_, width) in zip(cells, _COLUMNS, strict=True)).rstrip()
