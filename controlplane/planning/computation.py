"""The parts of a proposal from its snapshot: actions in order, measures, cost, rollback, seal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from controlplane.models import Snapshot
from controlplane.planning import budget as budgets
from controlplane.planning import execution_plan
from controlplane.planning.adapter import Progress
from controlplane.planning.adapters import own_measures
from controlplane.planning.execution_plan import StepLimits
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import cluster_values, measures
from controlplane.planning.plan_summary import PlanSummary
from controlplane.plans.plan import PlannedAction, Row, rows_of, seal_of


@dataclass(frozen=True)
class Computed:
    """The columns of a proposal that a plan determines.

    `actions`: rows in the order of execution; `imbalance_after`: each action; `before`, `after`:
    measures by name; `predicted`: the cost and the measures of the execution; `rollback_cost`: the
    cost of a complete rollback; `summary`: `plan_summary.PlanSummary` as JSON values.
    """

    actions: list[Row]
    imbalance_after: list[float]
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    predicted: dict[str, Any] = field(repr=False)
    rollback_cost: dict[str, Any]
    summary: dict[str, Any] = field(repr=False)
    seal: str

    def columns(self) -> dict[str, Any]:
        """Return the columns of a proposal's row."""
        return dict(vars(self))


def compute_plan(
    row: Snapshot,
    planner: str,
    plan: Sequence[PlannedAction],
    limits: StepLimits,
    step_s: float,
    *,
    budget: Mapping[str, float] | None = None,
    progress: Progress = lambda _: None,
) -> Computed:
    """Return an ordered, measured and sealed plan with its cost, without excluded objects.

    Under a `budget`, only with the best moves within it.
    """
    snapshot, summary = row.value(), dict[str, Any]()
    allowed = execution_plan.allowed(snapshot, plan)
    excluded = len(plan) - len(allowed)
    if budget:
        chosen = budgets.fit_to_budget(snapshot, allowed, budget, limits, step_s, progress)
        allowed, summary = chosen.plan, {"budget": chosen.summary}
    ordered = execution_plan.in_order(snapshot, allowed)
    model, own = LoadModel.of(snapshot), own_measures(planner)
    before = measures(snapshot, (), own, model)
    after = measures(snapshot, ordered.plan, own, model)
    cost = execution_plan.estimate_cost(ordered.plan, limits, step_s)
    rollback = execution_plan.rollback(ordered.plan)
    return Computed(
        actions=rows_of(ordered.plan),
        imbalance_after=ordered.imbalance,
        before=before,
        after=after,
        predicted=cost.to_json()
        | cluster_values(after)
        | {"safe": ordered.safe, "excluded": excluded, "left_out": len(plan) - len(ordered.plan)}
        | summary,
        rollback_cost=execution_plan.estimate_cost(rollback, limits, step_s).to_json(),
        summary=PlanSummary.of(ordered.plan, ordered.imbalance, snapshot.query_count).to_json(),
        seal=seal_of(ordered.plan, row.digest),
    )
