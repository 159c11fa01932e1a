"""The partitioning planner: the key groupings, and the JSON form of streams and assignments.

Each grouping assigns the messages of a given stream; `recommend` chooses among the groupings, and
plans for clusters.
"""

from typing import Any, Final

from algorithms.partitioning import formats, recommendation_formats
from algorithms.partitioning.catalog import GROUPINGS
from algorithms.partitioning.formats import StreamSettings
from algorithms.partitioning.recommendation import Recommend
from algorithms.planner import Algorithm, Planner

PARTITIONING: Final = "partitioning"
RECOMMEND: Final = "recommend"

_GROUPINGS: Final = tuple(
    Algorithm(info.name, info.title, "online", info.parameters, plans_clusters=False)
    for info in GROUPINGS.values()
)
_RECOMMENDATION: Final = Algorithm(
    RECOMMEND,
    "Recommendation of a key grouping",
    "offline",
    Recommend,
    read=lambda data, _: recommendation_formats.problem_from_json(data),
    report=lambda run: recommendation_formats.recommendation_to_json(run.plan),
    plans_clusters=True,
)


def _plan_to_json(run: Any) -> dict[str, Any]:
    return formats.plan_to_json(run.plan)


PLANNER: Final = Planner(
    name=PARTITIONING,
    title="Partitioning of streams among workers",
    algorithms=(*_GROUPINGS, _RECOMMENDATION),
    problem=StreamSettings,
    read=formats.problem_from_json,
    report=_plan_to_json,
    order=3,
)
