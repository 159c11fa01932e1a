"""The admission planner with lower bounds, and the JSON form of problems and plans."""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.admission import planner
from algorithms.admission.planner import PARALLELISM
from algorithms.lab.admission import formats, scaling_formats
from algorithms.lab.admission.bounds import Bounds
from algorithms.lab.planner import JsonPlanner
from algorithms.planner import Algorithm
from algorithms.vocabulary import Parameters, Progress, silent


@dataclass(frozen=True)
class NodeBounds(Parameters):
    """Lower bounds of the number of split nodes, and the least number for small cases."""

    def solve(self, problem: Any, progress: Progress = silent) -> Bounds:
        """Return the bounds of a bin packing problem. Raises `BadProblem`."""
        result: Bounds = problem.bounds()
        progress(1.0)
        return result


PLANNER: Final = JsonPlanner.of(
    planner.PLANNER,
    (Algorithm("bounds", "Lower bounds of the number of nodes", "offline", NodeBounds),),
    read=formats.problem_from_json,
    report=lambda run: formats.plan_to_json(run.problem, run.plan),
    reads={
        "bounds": lambda data, _: formats.bins_from_json(data),
        PARALLELISM: lambda data, _: scaling_formats.problem_from_json(data),
    },
    reports={
        "bounds": lambda run: formats.bounds_to_json(run.plan),
        PARALLELISM: lambda run: scaling_formats.plan_to_json(run.problem, run.plan),
    },
)
