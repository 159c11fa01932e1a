"""The JSON form of plans out of feasible input tables."""

from typing import Any

from algorithms.lab.planner import Run
from algorithms.lab.shedding import formats
from algorithms.lab.shedding.fit.distributed import DistributedFitPlan


def run_to_json(run: Run) -> dict[str, Any]:
    """Return a plan as JSON values, with the rows of the tables, and what the nodes sent."""
    plan = run.plan
    result = formats.plan_to_json(plan) | {"rows": plan.rows}
    if isinstance(plan, DistributedFitPlan):
        traffic = plan.traffic
        result["messages"] = {
            "count": traffic.messages,
            "rows": traffic.rows,
            "bytes": traffic.bytes,
        }
    return result
