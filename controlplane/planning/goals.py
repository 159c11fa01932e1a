"""Goals of plans: what a person wants, and the planner, algorithm and parameters for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from controlplane.models import Cluster, Query

# The slack of a plan for an even load; the cluster's slack if that is smaller.
_EVEN: Final = 0.05
# The share of the moves of the whole plan that a plan with few moves may have.
_FEW: Final = 0.25


class Goal(StrEnum):
    """What a plan is for."""

    TRAFFIC = "traffic"
    EVEN = "even"
    FEW_MOVES = "few_moves"


@dataclass(frozen=True)
class GoalPlan:
    """A planner, its algorithm and parameters; names are those of `planning.adapters`."""

    planner: str
    algorithm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def goal_plan(cluster: Cluster, goal: Goal) -> GoalPlan:
    """Return the plan for a goal: of placement, or of migration if all queries are split."""
    running = Query.objects.filter(cluster=cluster, state=Query.State.RUNNING)
    if running.exists() and not running.filter(task_count=1).exists():
        return _MIGRATION[goal]
    if goal is Goal.EVEN:
        return GoalPlan("placement", "mms", {"nu": min(cluster.nu, _EVEN)})
    return _PLACEMENT[goal]


_PLACEMENT: Final[Mapping[Goal, GoalPlan]] = {
    Goal.TRAFFIC: GoalPlan("placement", "refined", {"start": "better"}),
    Goal.FEW_MOVES: GoalPlan("placement", "mms", {"budget": {"share": _FEW}}),
}
_MIGRATION: Final[Mapping[Goal, GoalPlan]] = {
    # Migration moves tasks of split queries, whose records have no copies to save.
    Goal.TRAFFIC: GoalPlan("migration", "single_step"),
    Goal.EVEN: GoalPlan("migration", "single_step", {"tau": _EVEN}),
    Goal.FEW_MOVES: GoalPlan("migration", "single_step", {"tau": 0.4}),
}
