"""When something has grown: samples over time, of which the later ones are held against the earlier ones."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

Sample = Mapping[str, float]

# How much more the median of the last third of the samples may be than the second's: a share of it, and so much on top.
ALLOWED: Final = {
    "MB": (0.05, 4.0),
    # One for each probe under way, of which there are more while the machine is busy. If one in a thousand probes left
    # one behind, there would be hundreds more in each third.
    "files": (0.15, 10),
    "threads": (0.0, 0),
    "tasks": (0.15, 10),
    "kB stored": (0.05, 256),  # in pages
}


def describe(sample: Sample) -> str:
    return ", ".join(f"{number:,.0f} {what}" for what, number in sample.items())


def find_growth(samples: Sequence[Sample]) -> list[str]:
    """What of these kept growing, in words. The first third is for filling up, and is not looked at."""
    third = len(samples) // 3
    middle, last = samples[third : 2 * third], samples[2 * third :]
    found = []
    for what in samples[-1]:
        share, more = ALLOWED[what]
        # Not the highest: how many probes happen to be under way in the moment of a sample is no growth.
        before, after = (median(sample[what] for sample in part) for part in (middle, last))
        if after > before * (1 + share) + more:
            found.append(f"{what}: from {before:,.0f} to {after:,.0f}")
    return found
