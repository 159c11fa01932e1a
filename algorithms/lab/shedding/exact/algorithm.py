"""The algorithm `exact`: the optimum from cuts and regions, or fair shares of the outputs."""

from dataclasses import dataclass
from typing import Any

from algorithms.lab.shedding import formats
from algorithms.lab.shedding.exact.planner import ExactPlanner
from algorithms.shedding.fair_rungs import fair_flows
from algorithms.shedding.problem import SheddingPlan, SheddingProblem
from algorithms.vocabulary import Parameters, Progress, parameter, silent


@dataclass(frozen=True)
class ExactPlan(SheddingPlan):
    """An optimal plan, and what its planner has: cuts, regions, linear programs that it solved."""

    cuts: int
    regions: int
    programs: int


@dataclass(frozen=True)
class Exact(Parameters):
    """The optimum by cuts and optimal bases, which other rates reuse; fair shares as an option."""

    fairness: str = parameter(
        "none",
        choices={"none": "None", "max_min": "Largest least share"},
        help="Largest least share: first raise the least kept part of an output over its weight, "
        "then the next; none: the largest weighted throughput.",
    )

    def solve(self, problem: SheddingProblem, progress: Progress = silent) -> SheddingPlan:
        """Return an optimal or a fair plan. Raises `NotProven` if floors are not feasible."""
        if self.fairness == "max_min":
            return fair_plan(problem, progress)
        planner = ExactPlanner(problem.network)
        plan = planner.plan(problem.rates)
        progress(1.0)
        return ExactPlan(plan.keep, plan.outcome, planner.cuts, planner.regions, planner.programs)


def fair_plan(problem: SheddingProblem, progress: Progress = silent) -> SheddingPlan:
    """Return the fair plan with the most weighted throughput.

    Raises `TooLarge`, and `NotProven` if floors are not feasible or HiGHS does not solve a program.
    """
    flows = fair_flows(problem.model, problem.vector, progress).flows
    progress(1.0)
    return SheddingPlan.of_flows(problem, flows)


def exact_plan_to_json(plan: SheddingPlan) -> dict[str, Any]:
    """Return a plan as JSON values, with the size of its planner unless it is a fair plan."""
    result = formats.plan_to_json(plan)
    if isinstance(plan, ExactPlan):
        result |= {"cuts": plan.cuts, "regions": plan.regions, "lp_values": plan.programs}
    return result
