"""The whole of Lookout in simulated worlds, by the thousand: the real monitor, mirror and reader on virtual time, with
everything going wrong that can, and rules that hold at every step."""

from tests.campaign.part import Part
from tests.simulation.worlds.hunt import run

PART = Part("thousands of simulated worlds in which everything goes wrong that can, held against the contract", 10, run)
