"""The placement planner with the JSON form of its problems and plans."""

from dataclasses import replace
from typing import Any, Final

from algorithms.lab.placement.formats import plan_to_json, problem_from_json
from algorithms.lab.planner import JsonPlanner
from algorithms.placement import planner
from algorithms.placement.online import OnlinePlacement
from algorithms.placement.problem import PlacementProblem
from algorithms.vocabulary import Ints


def promised_caps(parameters: Any, problem: PlacementProblem) -> Ints:
    """Return the most queries per server that a plan of an algorithm may have, int64[k]."""
    if isinstance(parameters, OnlinePlacement):
        return parameters.promised_caps(problem)
    return problem.caps


PLANNER: Final = JsonPlanner.of(
    # A running placement is not a problem of the paper.
    replace(planner.PLANNER, algorithms=planner.FROM_NOTHING),
    read=lambda data, balance: problem_from_json(data, balance.nu),
    report=lambda run: plan_to_json(run.plan, promised_caps(run.parameters, run.problem)),
)
