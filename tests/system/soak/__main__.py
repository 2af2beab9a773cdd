"""One simulated year in this process: python -m tests.system.soak CHAINS RECHECK_S DAYS"""

import sys

from tests.system.soak.year import Size, live

if __name__ == "__main__":
    chains, recheck_s, days = map(int, sys.argv[1:])
    live(Size(chains, recheck_s), days)
