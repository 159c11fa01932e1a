"""The shedding planner: its algorithms, and the JSON form of its problems and plans."""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.planner import Algorithm, Planner
from algorithms.shedding import formats
from algorithms.shedding.lp import Lp
from algorithms.vocabulary import Parameters

SHEDDING: Final = "shedding"


@dataclass(frozen=True)
class NoSettings(Parameters):
    """A shedding problem has no parameters of its own."""


_ALGORITHMS: Final = (Algorithm("lp", "Optimum at the given rates", "offline", Lp),)


def _plan_to_json(run: Any) -> dict[str, Any]:
    return formats.plan_to_json(run.plan)


PLANNER: Final = Planner(
    name=SHEDDING,
    title="Load shedding in overloads",
    algorithms=_ALGORITHMS,
    problem=NoSettings,
    read=formats.problem_from_json,
    report=_plan_to_json,
    order=5,
)
