"""The registered algorithm: a start by an algorithm of the paper, then refinement."""

import time
from dataclasses import dataclass

from algorithms.placement.offline.greedy import IncrementalCost, Mms
from algorithms.placement.offline.solving import solved
from algorithms.placement.online import LeastCost
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine.refining import refine
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Parameters, Progress, SmallInts, parameter, portion, silent

# The start's share of the progress; it takes about that share of the time.
_START = 0.1


@dataclass(frozen=True)
class Refined(Parameters):
    """Annealing from a greedy start, beyond section 4: the best plan within the time given.

    Moves and exchanges pieces of query types; the plan never delivers more than the start.
    """

    seconds: float = parameter(
        10.0,
        unit="s",
        help="Time for the whole plan; where it is short, fewer moves are tried.",
        minimum=0.0,
        maximum=3600.0,
    )
    sweeps: int = parameter(
        2000,
        unit="moves per query type",
        help="How many moves are tried for each piece of a query type, time permitting.",
        minimum=1,
        maximum=1_000_000,
    )
    start: str = parameter(
        "least_cost",
        help="What is refined: the plan of LeastCost, which takes next to no time, of IC, of MMS, "
        "or the better of these two.",
        choices=("least_cost", "ic", "mms", "better"),
    )
    seed: int = parameter(0, help="Same seed, same plan, time permitting.", minimum=0)

    def solve(self, problem: PlacementProblem, progress: Progress = silent) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return solved(problem, progress, lambda: self._assign(problem, progress))

    def _assign(self, problem: PlacementProblem, progress: Progress) -> SmallInts:
        started = time.perf_counter()
        assignment = self._start(problem)
        progress(_START)
        return refine(
            problem,
            assignment,
            sweeps=self.sweeps,
            seconds=max(0.0, self.seconds - (time.perf_counter() - started)),
            seed=self.seed,
            progress=portion(progress, _START, 1 - _START),
        )

    def _start(self, problem: PlacementProblem) -> SmallInts:
        """Return the start; IC's (Figure 1's for single sources) where LeastCost has none."""
        if self.start == "least_cost" and not problem.types.single_source:
            # With this alpha the bound of equation 7 is the offline cap when all have arrived.
            alpha = problem.nu * problem.queries / problem.servers
            plan = LeastCost(nu=problem.nu, alpha=alpha).solve(problem)
            if (plan.loads <= problem.caps).all():
                return plan.assignment
        rules: list[IncrementalCost | Mms] = []
        if self.start != "mms":
            rules.append(IncrementalCost())
        if self.start in ("mms", "better"):
            rules.append(Mms())
        plans = [rule.solve(problem) for rule in rules]
        return min(plans, key=lambda plan: plan.traffic).assignment
