"""The admission planner: its algorithms, and the JSON form of their problems and plans."""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.admission import formats, scaling_formats
from algorithms.admission.bounds import Bounds
from algorithms.admission.formats import Forecasting
from algorithms.admission.problem import AdmissionPlan
from algorithms.admission.scaling import Parallelism
from algorithms.admission.strategies import Ard, Ari, Drf, DrfM, Par, Profile
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import Parameters, Progress, silent

ADMISSION: Final = "admission"
PARALLELISM: Final = "parallelism"


@dataclass(frozen=True)
class NodeBounds(Parameters):
    """Lower bounds of the number of split nodes, and the least number for small cases."""

    def solve(self, problem: Any, progress: Progress = silent) -> Bounds:
        """Return the bounds of a bin packing problem. Raises `BadProblem`."""
        result: Bounds = problem.bounds()
        progress(1.0)
        return result


_ALGORITHMS: Final = (
    Algorithm("profile", "Rate profiles", "online", Profile),
    Algorithm("drf_m", "Delta rate forecast with meta-data", "online", DrfM),
    Algorithm("drf", "Delta rate forecast", "online", Drf),
    Algorithm("ard", "Fastest streams first", "online", Ard),
    Algorithm("ari", "Slowest streams first", "online", Ari),
    Algorithm("par", "All streams in every period", "online", Par),
    Algorithm(
        "bounds",
        "Lower bounds of the number of nodes",
        "offline",
        NodeBounds,
        read=lambda data, _: formats.bins_from_json(data),
        report=lambda run: formats.bounds_to_json(run.plan),
    ),
    Algorithm(
        PARALLELISM,
        "Numbers of query and aggregator nodes",
        "online",
        Parallelism,
        read=lambda data, _: scaling_formats.problem_from_json(data),
        report=lambda run: scaling_formats.plan_to_json(run.problem, run.plan),
        plans_clusters=True,
    ),
)


def _plan_to_json(run: Any) -> dict[str, Any]:
    plan: AdmissionPlan = run.plan
    return formats.plan_to_json(run.problem, plan)


PLANNER: Final = Planner(
    name=ADMISSION,
    title="Admission of input streams to split nodes",
    algorithms=_ALGORITHMS,
    problem=Forecasting,
    read=formats.problem_from_json,
    report=_plan_to_json,
    order=2,
)
