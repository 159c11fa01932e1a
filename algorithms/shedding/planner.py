"""The shedding planner: its algorithms."""

from dataclasses import dataclass
from typing import Final

from algorithms.planner import Algorithm, Planner
from algorithms.shedding.lp import Lp
from algorithms.vocabulary import Parameters

SHEDDING: Final = "shedding"


@dataclass(frozen=True)
class NoSettings(Parameters):
    """A shedding problem has no parameters of its own."""


PLANNER: Final = Planner(
    name=SHEDDING,
    title="Prepare load shedding",
    # A ladder is a plan along one mix of rates.
    algorithms=(Algorithm("lp", "Optimum at the given rates", "offline", Lp),),
    problem=NoSettings,
    order=5,
)
