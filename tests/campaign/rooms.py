"""Each feature taken out of a copy of the tree, of which the rest is checked and tested."""

from typing import Final

from tests.campaign.part import Outcome, Part
from tools.rooms import find_problems, find_rooms


def run(_seconds: float) -> Outcome:
    rooms = find_rooms()
    return Outcome({"features": len(rooms)}, tuple(problem for room in rooms for problem in find_problems(room)))


PART: Final = Part("what is left without each feature", 8, run)
