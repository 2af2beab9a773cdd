"""Runs every measurement and prints one table. Give names to run only those: python -m bench replay"""

import signal
import sys

from rich.console import Console
from rich.table import Table

from bench import crowding, decoding, edging, fleet, probing, publishing, reaching, replaying, serving, watching

MEASUREMENTS = {
    "replay": replaying.measure,
    "publish": publishing.measure,
    "probe": probing.measure,
    "decode": decoding.measure,
    "serve": serving.measure,
    "watch": watching.measure,
    "reach": reaching.measure,
    "fleet": fleet.measure,
    "edge": edging.measure,
    "crowd": crowding.measure,
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        print(f"bench: {', '.join(unknown)}: choose from {', '.join(MEASUREMENTS)}", file=sys.stderr)
        return 2
    table = Table("measured", "figure", "against", "ratio", "target", "", title="Lookout, one core")
    missed = False
    for name in names or MEASUREMENTS:
        for figure in MEASUREMENTS[name]():
            table.add_row(*figure.row())
            missed |= figure.missed
    Console().print(table)
    return 1 if missed else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))  # what was started is ended, as after Ctrl-C
    sys.exit(main(sys.argv[1:]))
