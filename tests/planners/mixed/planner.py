"""The algorithm: rotate some queries, relieve the first streams, close the last node."""

from collections.abc import Mapping
from dataclasses import dataclass

from algorithms.planner import Algorithm, Planner
from algorithms.vocabulary import Parameters, Progress, parameter


@dataclass(frozen=True)
class MixedProblem:
    """Queries with their nodes, active nodes, streams by id, split nodes of the streams."""

    queries: Mapping[int, int]
    nodes: tuple[int, ...]
    streams: tuple[int, ...]
    split_nodes: int
    share: float


@dataclass(frozen=True)
class MixedPlan:
    """Targets by query, the streams to relieve, the stream to redirect, the node to close."""

    targets: Mapping[int, int]
    relieved: tuple[int, ...]
    redirected: int
    closed: int


@dataclass(frozen=True)
class Relief(Parameters):
    """How much load is shed."""

    share: float = parameter(0.2, help="Share of records to drop.", minimum=0.0, maximum=1.0)


@dataclass(frozen=True)
class Rotate(Parameters):
    """Rotate queries over the nodes that stay."""

    count: int = parameter(4, help="Queries to move.", minimum=0, maximum=100)

    def solve(self, problem: MixedProblem, progress: Progress | None = None) -> MixedPlan:
        """Return the plan, after which the last node hosts nothing."""
        staying, closed = problem.nodes[:-1], problem.nodes[-1]
        rows = list(problem.queries.items())
        chosen = rows[: self.count] + [row for row in rows[self.count :] if row[1] == closed]
        targets = {
            query: next(other for other in (*staying[place % len(staying) :], *staying)
                        if other != node)
            for place, (query, node) in enumerate(chosen)
        }  # fmt: skip
        if progress is not None:
            progress(1.0)
        return MixedPlan(targets, problem.streams[:2], problem.streams[-1], closed)


PLANNER = Planner(
    name="mixed",
    title="Actions of every kind",
    algorithms=(Algorithm("rotate", "Rotate", "offline", Rotate),),
    problem=Relief,
)
