"""What every offline algorithm does around its own work."""

import time
from collections.abc import Callable

import numpy as np

from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan, measured
from algorithms.vocabulary import Progress, SmallInts


def solved(
    problem: PlacementProblem, progress: Progress, assign: Callable[[], SmallInts]
) -> PlacementPlan:
    """Refuse what does not fit, run `assign`, and measure what it returns."""
    problem.require_feasible()
    started = time.perf_counter()
    assignment = assign() if problem.queries else np.empty(0, np.int32)
    progress(1.0)
    return measured(problem, assignment, problem.caps, time.perf_counter() - started)
