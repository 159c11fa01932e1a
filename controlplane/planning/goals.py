"""Goals of plans: what a person wants, and the planner, algorithm and parameters for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from controlplane.models import Cluster, Query
from controlplane.planning.measures import IMBALANCE, TRAFFIC

# The slack of a plan for an even load; the cluster's slack if that is smaller.
_EVEN: Final = 0.05
# The share of the moves of the whole plan that a plan with few moves may have.
_FEW: Final = 0.25


class Goal(StrEnum):
    """What a plan is for."""

    TRAFFIC = "traffic"
    EVEN = "even"
    FEW_MOVES = "few_moves"


# The measures of which a plan of the goal must improve one; without any, those of its planner.
AIMS: Final[Mapping[Goal, tuple[str, ...]]] = {
    Goal.TRAFFIC: (TRAFFIC.name,),
    Goal.EVEN: (IMBALANCE.name,),
    Goal.FEW_MOVES: (),
}


@dataclass(frozen=True)
class GoalPlan:
    """A planner, its algorithm and parameters; names are those of `planning.adapters`."""

    planner: str
    algorithm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def goal_plan(cluster: Cluster, goal: Goal) -> GoalPlan:
    """Return the plan for a goal: of placement, or of migration if all queries are split."""
    running = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING)
    if goal in _MIGRATION and running.exists() and not running.filter(task_count=1).exists():
        return _MIGRATION[goal]
    if goal is Goal.EVEN:
        return GoalPlan("placement", "mms", {"nu": min(cluster.nu, _EVEN)})
    return _PLACEMENT[goal]


_PLACEMENT: Final[Mapping[Goal, GoalPlan]] = {
    Goal.TRAFFIC: GoalPlan("placement", "refined", {"start": "better"}),
    Goal.FEW_MOVES: GoalPlan("placement", "mms", {"budget": {"share": _FEW}}),
}
_MIGRATION: Final[Mapping[Goal, GoalPlan]] = {
    # Not traffic: the records of split queries have no copies to save.
    Goal.EVEN: GoalPlan("migration", "single_step", {"tau": _EVEN}),
    Goal.FEW_MOVES: GoalPlan("migration", "single_step", {"tau": 0.4}),
}
