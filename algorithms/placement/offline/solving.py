"""The steps that all offline algorithms share."""

import time
from collections.abc import Callable

import numpy as np

from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan, measured
from algorithms.vocabulary import Progress, SmallInts


def solved(
    problem: PlacementProblem, progress: Progress, assign: Callable[[], SmallInts]
) -> PlacementPlan:
    """Check feasibility, run `assign`, and measure its result."""
    problem.require_feasible()
    started = time.perf_counter()
    assignment = assign() if problem.queries else np.empty(0, np.int32)
    progress(1.0)
    return measured(problem, assignment, problem.caps, time.perf_counter() - started)
