"""Every algorithm by planner and name; forms, API schema, CLI and benchmarks are derived here.

To add one: write its parameter class with `solve`, then one row in the planner's tuple below.
"""

from dataclasses import dataclass
from typing import Final

from algorithms.errors import UnknownAlgorithm
from algorithms.placement.offline import IncrementalCost, Mms, OffRand
from algorithms.placement.online import (
    LeastCost,
    LeastQueryTypes,
    LeastSource,
    OnlinePlacement,
    OnRand,
)
from algorithms.placement.problem import PlacementProblem
from algorithms.placement.result import PlacementPlan
from algorithms.vocabulary import Ints, Kind, Progress

PLACEMENT: Final = "placement"
PlacementParameters = Mms | IncrementalCost | OffRand | OnlinePlacement


@dataclass(frozen=True)
class PlacementAlgorithm:
    """One way to place queries: its names, when it decides, its parameter class."""

    name: str
    title: str
    kind: Kind
    parameters: type[PlacementParameters]
    planner: str = PLACEMENT

    @property
    def summary(self) -> str:
        """The first line of the algorithm's documentation."""
        return (self.parameters.__doc__ or "").strip().splitlines()[0]

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
        chosen = self.parameters() if parameters is None else parameters
        if type(chosen) is not self.parameters:
            raise TypeError(f"{self.name} takes {self.parameters.__name__}, not {chosen!r}")
        return chosen.solve(problem, progress)

    def promised_caps(
        self, problem: PlacementProblem, parameters: PlacementParameters | None = None
    ) -> Ints:
        """Return the most queries per server that a plan of this algorithm may have, int64[k]."""
        chosen = self.parameters() if parameters is None else parameters
        if isinstance(chosen, OnlinePlacement):
            return chosen.promised_caps(problem)
        return problem.caps


_ALL: Final = (
    PlacementAlgorithm("mms", "Min-max traffic per server", "offline", Mms),
    PlacementAlgorithm("ic", "Incremental cost", "offline", IncrementalCost),
    PlacementAlgorithm("off_rand", "Random (offline)", "offline", OffRand),
    PlacementAlgorithm("least_cost", "Least cost", "online", LeastCost),
    PlacementAlgorithm("least_source", "Least source", "online", LeastSource),
    PlacementAlgorithm("least_qt", "Least query types", "online", LeastQueryTypes),
    PlacementAlgorithm("on_rand", "Random (online)", "online", OnRand),
)


def algorithms(planner: str, kind: Kind | None = None) -> tuple[PlacementAlgorithm, ...]:
    """Return the algorithms of a planner, best known first, perhaps of one kind only."""
    return tuple(a for a in _ALL if a.planner == planner and kind in (None, a.kind))


def algorithm(planner: str, name: str) -> PlacementAlgorithm:
    """Return one algorithm. Raises `UnknownAlgorithm`, which names those there are."""
    found = {a.name: a for a in algorithms(planner)}
    if name not in found:
        raise UnknownAlgorithm(planner, name, tuple(found))
    return found[name]


def planners() -> tuple[str, ...]:
    """Return the planners that have algorithms."""
    return tuple(dict.fromkeys(a.planner for a in _ALL))
