"""Runs the measurements and prints each figure as soon as it is known. Names of parts run only those."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Mapping

from bench import crowd, decode, edge, fleet, probe, publish, reach, replay, serve, watch
from bench.figures import Figure
from bench.runner import Broken, run_parts
from bench.table import as_json, heading, lines, summary

MEASUREMENTS: Mapping[str, Callable[[], Iterator[Figure]]] = {
    "replay": replay.measure,
    "publish": publish.measure,
    "probe": probe.measure,
    "decode": decode.measure,
    "serve": serve.measure,
    "watch": watch.measure,
    "reach": reach.measure,
    "fleet": fleet.measure,
    "edge": edge.measure,
    "crowd": crowd.measure,
}


def main(arguments: list[str], parts: Mapping[str, Callable[[], Iterator[Figure]]] = MEASUREMENTS) -> int:
    """0 if every target was met, 1 if one was missed or a part broke."""
    asked = _parse(arguments, parts)
    table = sys.stderr if asked.json else sys.stdout  # the other one is for the figures as JSON
    print(heading(), file=table)
    results = []
    for result in run_parts({name: parts[name] for name in asked.part or parts}):
        results.append(result)
        print("\n".join(lines(result)), file=table, flush=True)
    print(summary(results), file=table)
    if asked.json:
        print(as_json(results))
    return 1 if any(isinstance(result, Broken) or result.figure.missed for result in results) else 0


def _parse(arguments: list[str], parts: Mapping[str, object]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, epilog=f"parts: {', '.join(parts)}", allow_abbrev=False
    )
    parser.add_argument("part", nargs="*", help="what to measure, instead of everything")
    parser.add_argument("--json", action="store_true", help="write the figures as JSON; the table goes to stderr")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.part if name not in parts]
    if unknown:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(parts)}")
    return asked


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))  # what was started is ended, as after Ctrl-C
    sys.exit(main(sys.argv[1:]))
