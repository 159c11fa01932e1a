"""The partitioning planner with the key groupings, and the JSON form of streams and assignments.

Each grouping assigns the messages of a given stream.
"""

from typing import Final

from algorithms.lab.partitioning import formats, recommendation_formats
from algorithms.lab.planner import JsonPlanner
from algorithms.partitioning import planner
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.partitioning.planner import RECOMMEND
from algorithms.planner import Algorithm

_GROUPINGS: Final = tuple(
    Algorithm(info.name, info.title, "online", info.parameters) for info in GROUPINGS.values()
)

PLANNER: Final = JsonPlanner.of(
    planner.PLANNER,
    _GROUPINGS,
    read=formats.problem_from_json,
    report=lambda run: formats.plan_to_json(run.plan),
    reads={RECOMMEND: lambda data, _: recommendation_formats.problem_from_json(data)},
    reports={RECOMMEND: lambda run: recommendation_formats.recommendation_to_json(run.plan)},
)
