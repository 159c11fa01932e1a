"""The certificate check of a plan, which computes its outcome again."""

from typing import Final

from algorithms.errors import BadProblem
from algorithms.shedding.problem import SheddingPlan, SheddingProblem, outcome_of

# Relative rounding that a certificate tolerates.
TOLERANCE: Final = 1e-7


def check_plan(problem: SheddingProblem, plan: SheddingPlan) -> None:
    """Raise `BadProblem` unless the plan keeps parts, overloads no resource and is as it claims."""
    for name, part in plan.keep.items():
        if not -TOLERANCE <= part <= 1 + TOLERANCE:
            raise BadProblem(f"keep.{name}", f"must be from 0 to 1, not {part}")
    outcome = outcome_of(problem, plan.keep)
    limits = dict(zip(problem.network.resources, problem.model.capacities.tolist(), strict=True))
    for name, load in outcome.loads.items():
        if load > limits[name] * (1 + TOLERANCE):
            raise BadProblem(f"loads.{name}", f"is {load}, above the capacity {limits[name]}")
    if abs(outcome.value - plan.outcome.value) > TOLERANCE * max(1.0, abs(outcome.value)):
        raise BadProblem("value", f"is {outcome.value}, not {plan.outcome.value}")
