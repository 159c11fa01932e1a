"""The placement planner: its algorithms."""

from dataclasses import dataclass
from typing import Final

from algorithms.placement.exact import Exact
from algorithms.placement.hypergraph import Hypergraph
from algorithms.placement.improve import Improve
from algorithms.placement.offline import IncrementalCost, Mms, Mqp, OffRand, SingleSource
from algorithms.placement.online import LeastCost, LeastQueryTypes, LeastSource, OnRand, Reservation
from algorithms.placement.problem import relative_slack
from algorithms.placement.refine import Refined
from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import Parameters


@dataclass(frozen=True)
class Balance(Parameters):
    """How evenly servers must be loaded, section 2."""

    nu: float = relative_slack()


# The algorithm that improves the running placement; all others place every query again.
IMPROVE: Final = "improve"
FROM_NOTHING: Final = (
    Algorithm("refined", "Refined by annealing", "offline", Refined),
    Algorithm("hypergraph", "Hypergraph partitioning", "offline", Hypergraph),
    Algorithm("exact", "Proven optimum", "offline", Exact),
    Algorithm("mms", "Min-max traffic per server", "offline", Mms),
    Algorithm("ic", "Incremental cost", "offline", IncrementalCost),
    Algorithm("mqp", "Query type packing", "offline", Mqp),
    Algorithm("single_source", "Single source", "offline", SingleSource),
    Algorithm("off_rand", "Random (offline)", "offline", OffRand),
    Algorithm("least_cost", "Least cost", "online", LeastCost),
    Algorithm("least_source", "Least source", "online", LeastSource),
    Algorithm("least_qt", "Least query types", "online", LeastQueryTypes),
    Algorithm("reservation", "Reservation of places", "online", Reservation),
    Algorithm("on_rand", "Random (online)", "online", OnRand),
)


PLANNER: Final = Planner(
    name="placement",
    title="Move queries between nodes",
    algorithms=(
        Algorithm(IMPROVE, "Improved by few moves", "offline", Improve, problem=Parameters),
        *FROM_NOTHING,
    ),
    problem=Balance,
    order=0,
)
