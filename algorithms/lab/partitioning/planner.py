"""The partitioning planner with the key groupings, and the JSON form of streams and assignments.

Each grouping assigns the messages of a given stream.
"""

from dataclasses import dataclass
from typing import Any, Final

from algorithms.lab.partitioning import formats, recommendation_formats
from algorithms.lab.partitioning.problem import solve
from algorithms.lab.planner import JsonPlanner
from algorithms.partitioning import planner
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.partitioning.planner import RECOMMEND
from algorithms.planner import Algorithm
from algorithms.vocabulary import Progress, silent


@dataclass(frozen=True)
class Assignment(Algorithm):
    """A key grouping, which assigns the messages of a stream."""

    def solve(self, problem: Any, parameters: Any = None, progress: Progress = silent) -> Any:
        """Return the assignment of a `PartitioningProblem` with its loads and memory."""
        return solve(self.parameters() if parameters is None else parameters, problem, progress)


_GROUPINGS: Final = tuple(
    Assignment(info.name, info.title, "online", info.parameters) for info in GROUPINGS.values()
)

PLANNER: Final = JsonPlanner.of(
    planner.PLANNER,
    _GROUPINGS,
    read=formats.problem_from_json,
    report=lambda run: formats.plan_to_json(run.plan),
    reads={RECOMMEND: lambda data, _: recommendation_formats.problem_from_json(data)},
    reports={RECOMMEND: lambda run: recommendation_formats.recommendation_to_json(run.plan)},
)
