"""The registered planner: a start of the paper's, then refinement."""

import time
from dataclasses import dataclass

from algorithms.placement.offline.greedy import IncrementalCost, Mms
from algorithms.placement.offline.solving import solved
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine.refining import refine
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Parameters, Progress, SmallInts, parameter

# The start's share of the progress; it takes about this share of the time.
_START = 0.1


@dataclass(frozen=True)
class Refined(Parameters):
    """Annealing from a greedy start, beyond section 4: the best plan within the time given.

    Starts from IC, or from MMS where that is the better of the two on request, and moves and
    exchanges pieces of query types; the plan never delivers more than the start.
    """

    seconds: float = parameter(
        10.0,
        unit="s",
        help="Time for the whole plan; where it is short, fewer moves are tried.",
        minimum=0.0,
        maximum=3600.0,
    )
    sweeps: int = parameter(
        1000,
        unit="moves per query type",
        help="How many moves are tried for each piece of a query type, time permitting.",
        minimum=1,
        maximum=1_000_000,
    )
    start: str = parameter(
        "ic",
        unit="",
        help="What is refined: the plan of IC, of MMS, or the better of both.",
        choices=("ic", "mms", "better"),
    )
    seed: int = parameter(0, unit="", help="Same seed, same plan, time permitting.", minimum=0)

    def solve(self, problem: PlacementProblem, progress: Progress | None = None) -> PlacementPlan:
        """Place all queries. Raises `Infeasible` when they do not fit."""
        return solved(problem, progress, lambda: self._assign(problem, progress))

    def _assign(self, problem: PlacementProblem, progress: Progress | None) -> SmallInts:
        started = time.perf_counter()
        assignment = self._start(problem).assignment
        if progress is not None:
            progress(_START)
        return refine(
            problem,
            assignment,
            sweeps=self.sweeps,
            seconds=max(0.0, self.seconds - (time.perf_counter() - started)),
            seed=self.seed,
            progress=None
            if progress is None
            else lambda done: progress(_START + (1 - _START) * done),
        )

    def _start(self, problem: PlacementProblem) -> PlacementPlan:
        rules: list[IncrementalCost | Mms] = []
        if self.start in ("ic", "better"):
            rules.append(IncrementalCost())
        if self.start in ("mms", "better"):
            rules.append(Mms())
        return min((rule.solve(problem) for rule in rules), key=lambda plan: plan.traffic)
