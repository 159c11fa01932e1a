"""The placement planner: its algorithms, and how its problems and plans look as JSON."""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.placement.exact import Exact
from algorithms.placement.formats import plan_to_json, problem_from_json
from algorithms.placement.hypergraph import Hypergraph
from algorithms.placement.offline import IncrementalCost, Mms, Mqp, OffRand, SingleSource
from algorithms.placement.online import (
    LeastCost,
    LeastQueryTypes,
    LeastSource,
    OnlinePlacement,
    OnRand,
    Reservation,
)
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.refine import Refined
from algorithms.placement.result import PlacementPlan
from algorithms.planner import Algorithm, Planner, Run
from algorithms.vocabulary import MAX_SLACK, Ints, Parameters, Progress, parameter

PlacementParameters = (
    Mms
    | IncrementalCost
    | Mqp
    | SingleSource
    | OffRand
    | Refined
    | Hypergraph
    | Exact
    | OnlinePlacement
)


@dataclass(frozen=True)
class Balance(Parameters):
    """How evenly servers must be loaded, section 2."""

    nu: float = parameter(
        0.05,
        help="Relative slack: a server hosts at most (1 + nu) times the mean load.",
        minimum=0.0,
        maximum=MAX_SLACK,
    )


@dataclass(frozen=True)
class PlacementAlgorithm(Algorithm):
    """One way to place queries."""

    parameters: type[PlacementParameters]
    planner: str = "placement"

    def solve(
        self,
        problem: PlacementProblem,
        parameters: PlacementParameters | None = None,
        progress: Progress | None = None,
    ) -> PlacementPlan:
        """Run the algorithm; without parameters, with its defaults.

        `progress` is called with the share done; what it raises stops the run. Raises
        `Infeasible` (offline algorithms) and `TypeError` on parameters of another algorithm.
        """
        plan: PlacementPlan = self.chosen(parameters).solve(problem, progress)
        return plan

    def promised_caps(
        self, problem: PlacementProblem, parameters: PlacementParameters | None = None
    ) -> Ints:
        """Return the most queries per server that a plan of this algorithm may have, int64[k]."""
        chosen = self.chosen(parameters)
        if isinstance(chosen, OnlinePlacement):
            return chosen.promised_caps(problem)
        return problem.caps


PLACEMENT_ALGORITHMS: Final = (
    PlacementAlgorithm("refined", "Refined by annealing", "offline", Refined),
    PlacementAlgorithm("hypergraph", "Hypergraph partitioning", "offline", Hypergraph),
    PlacementAlgorithm("exact", "Proven optimum", "offline", Exact),
    PlacementAlgorithm("mms", "Min-max traffic per server", "offline", Mms),
    PlacementAlgorithm("ic", "Incremental cost", "offline", IncrementalCost),
    PlacementAlgorithm("mqp", "Query type packing", "offline", Mqp),
    PlacementAlgorithm("single_source", "Single source", "offline", SingleSource),
    PlacementAlgorithm("off_rand", "Random (offline)", "offline", OffRand),
    PlacementAlgorithm("least_cost", "Least cost", "online", LeastCost),
    PlacementAlgorithm("least_source", "Least source", "online", LeastSource),
    PlacementAlgorithm("least_qt", "Least query types", "online", LeastQueryTypes),
    PlacementAlgorithm("reservation", "Reservation of places", "online", Reservation),
    PlacementAlgorithm("on_rand", "Random (online)", "online", OnRand),
)


def _read(data: object, balance: Any) -> PlacementProblem:
    return problem_from_json(data, balance.nu)


def _report(run: Run) -> dict[str, Any]:
    caps = run.algorithm.promised_caps(run.problem, run.parameters)
    return plan_to_json(run.plan, caps)


PLANNER: Final = Planner(
    name="placement",
    title="Placement of queries on servers",
    algorithms=PLACEMENT_ALGORITHMS,
    problem=Balance,
    read=_read,
    report=_report,
    order=0,
)
