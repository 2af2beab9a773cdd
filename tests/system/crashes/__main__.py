"""Tries one crash point, to see a failure again: ``python -m tests.system.crashes sqlite-kill new:pwrite64:3``."""

import sys

from tests.system.crashes.points import KINDS

if __name__ == "__main__":
    kind, point = sys.argv[1:]
    with KINDS[kind].prepare() as (_, attempt):
        attempt(point)
    sys.stdout.write("it held\n")
