"""Adapter of the partitioning planner: key groupings of split queries, by samples of their keys."""

from collections.abc import Sequence
from typing import Any, Final

from algorithms.partitioning.planner import PLANNER, RECOMMEND
from controlplane.errors import Conflict
from controlplane.planners.partitioning.problem import (
    grouped_queries,
    planned_limit,
    predictions,
    problem_of,
)
from controlplane.planning.adapter import PlannerAdapter, PlannerResult, PlanRequest, WatchSupport
from controlplane.planning.measured.key_loads import Prediction
from controlplane.planning.measures import SKEW, Better, Measure, Unit
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.query_actions import SetKeyGrouping

NO_QUERY: Final = (
    "No query with several tasks runs whose key grouping can change: submit a query with a key"
    " grouping"
)
NO_SAMPLE: Final = (
    "No keys of these queries were sampled in the last ten minutes: wait until records arrive"
)


def plan_partitioning(request: PlanRequest) -> PlannerResult:
    """Plan the key grouping of every sampled query.

    Raises `Conflict` no_split_query or no_sample, and the errors of the algorithm.
    """
    snapshot = request.snapshot
    queries = grouped_queries(snapshot)
    if not queries:
        raise Conflict("no_split_query", NO_QUERY)
    sampled = [query for query in queries if query.keys is not None]
    if not sampled:
        raise Conflict("no_sample", NO_SAMPLE)
    actions = []
    for number, query in enumerate(sampled, start=1):
        if not query.excluded:
            problem = problem_of(query, snapshot)
            text = request.algorithm.solve(problem, request.own).recommended.text
            if text != problem.present:
                actions.append(SetKeyGrouping(query.id, text))
        request.progress(number / len(sampled))
    pairs = sum(prediction.keys for prediction in _predicted(snapshot, ()))
    return PlannerResult(actions, {SKEW: 0.0, PAIRS.name: float(pairs)})


def _predicted(snapshot: ClusterSnapshot, plan: Any) -> Sequence[Prediction]:
    """Return what the key groupings of the queries give that plans may change."""
    return [result for query, result in predictions(snapshot, plan) if not query.excluded]


def _skew(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    results = _predicted(snapshot, plan)
    return max(result.imbalance for result in results) if results else None


def _pairs(snapshot: ClusterSnapshot, _: Any, plan: Any) -> int | None:
    results = _predicted(snapshot, plan)
    return sum(result.memory for result in results) if results else None


def _partials(snapshot: ClusterSnapshot, _: Any, plan: Any) -> float | None:
    results = _predicted(snapshot, plan)
    return round(sum(result.partials_per_s for result in results), 3) if results else None


PAIRS: Final = Measure("pairs", "Pairs of a key and a task", Unit.COUNT, Better.LOWER, _pairs)

ADAPTER: Final = PlannerAdapter(
    planner=PLANNER,
    default=RECOMMEND,
    effect="changes of key groupings",
    hint="Changes key groupings of split queries, so that hot keys overload no task.",
    plan=plan_partitioning,
    improves=(SKEW, PAIRS.name),
    measures=(
        Measure(SKEW, "Largest skew of a query", Unit.SHARE, Better.LOWER, _skew),
        PAIRS,
        Measure("partials", "Partial results", Unit.PARTIALS, Better.LOWER, _partials),
    ),
    compared=0,
    changes_queries=True,
    watch=WatchSupport(
        frozenset({"skew"}),
        order=2,
        parameters=lambda _, limit: {"limit": planned_limit(limit)},
    ),
)
