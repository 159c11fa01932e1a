"""Improvement of a running placement: a snapshot as its problem, its plan as moves of tasks."""

from dataclasses import replace
from typing import Final

import numpy as np

from algorithms.placement.improve import Improvement, ImproveProblem, MeasureLimits, MoveBudget
from algorithms.vocabulary import Flags, Floats, Ints, SmallInts
from controlplane.errors import Conflict
from controlplane.planners.placement.policy_limits import PolicyLimits
from controlplane.planning.adapter import PlannerResult, PlanRequest
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import FULLEST, IMBALANCE, REPLICATION_FACTOR, aimed_values
from controlplane.plans.snapshot import ClusterSnapshot, Excluded
from controlplane.wire.routing.query_actions import MoveTasks

NO_NODE: Final = "No node of the cluster is active: activate one"
NO_QUERY: Final = "No query is running, so there is nothing to place: submit one"
# In the order of `MeasureLimits`.
_MEASURES: Final = (REPLICATION_FACTOR.name, IMBALANCE.name, FULLEST.name)


def plan_improvement(request: PlanRequest, bound: float) -> PlannerResult:
    """Plan moves that improve the cluster as it runs, within the limits of its policy.

    `bound`: the lower bound of the replication factor, 0 without one. Raises `Conflict` no_node or
    no_query.
    """
    snapshot = request.snapshot
    model = LoadModel.of(snapshot)
    budget = request.parameters.get("budget") or {}
    most = MoveBudget(budget.get("moves", np.inf), budget.get("bytes", np.inf))
    problem = improve_problem(snapshot, model)
    problem = replace(problem, budget=most, limits=aimed_limits(snapshot, problem))
    plan: Improvement = request.algorithm.solve(problem, request.own, request.progress)
    return PlannerResult(
        moves_of(model, problem.present, plan.assignment),
        bounds_of(bound),
    )


def bounds_of(replication: float) -> dict[str, float]:
    """Return the lower bounds of a plan's measures; 0: none is known."""
    return {REPLICATION_FACTOR.name: replication} if replication else {}


def moves_of(
    model: LoadModel, present: Ints | SmallInts, assignment: Ints | SmallInts
) -> list[MoveTasks]:
    """Return the moves of the units whose node changes."""
    names = [(int(query), 0) for query in model.ids] + list(model.tasks)
    moved = np.flatnonzero(assignment != present).tolist()
    return [
        MoveTasks(query, ((int(model.indices[assignment[unit]]), task, task + 1),))
        for unit, (query, task) in ((unit, names[unit]) for unit in moved)
    ]


def improve_problem(snapshot: ClusterSnapshot, model: LoadModel) -> ImproveProblem:
    """Return the problem: all tasks with their measured loads, and what exclusions leave free."""
    if not any(node.active for node in snapshot.nodes):
        raise Conflict("no_node", NO_NODE)
    if not snapshot.query_count:
        raise Conflict("no_query", NO_QUERY)
    excluded = set(snapshot.excluded)
    kept = np.array([Excluded("node", node.name) in excluded for node in snapshot.nodes], np.bool_)
    return ImproveProblem.from_arrays(
        model.rates,
        model.indptr,
        model.entries,
        model.nodes,
        model.capacities,
        _limits(snapshot),
        parts=model.parts,
        costs=_costs(model),
        movable=_movable(snapshot, model) & ~kept[model.nodes],
        active=[node.active for node in snapshot.nodes],
        open_nodes=~kept,
        sizes=model.state,
    )


def aimed_limits(snapshot: ClusterSnapshot, problem: ImproveProblem) -> MeasureLimits:
    """Return the values that a plan aims at; what exceeds none of them need not be improved.

    That is where an alert ends, the dead band below its limit.
    """
    now, below = problem.measured(problem.present), 1 - _policy(snapshot).dead_band
    return MeasureLimits._make(
        aim if value > below * limit else max(aim, value)
        for aim, limit, value in zip(lowered_limits(snapshot), problem.limits, now, strict=True)
    )


def lowered_limits(snapshot: ClusterSnapshot) -> MeasureLimits:
    """Return the limits of the policy, lower by the dead band and by the room for more load."""
    named = dict(zip(_MEASURES, _limits(snapshot), strict=True))
    aims = aimed_values(named, _policy(snapshot).dead_band)
    return MeasureLimits._make(aims[name] for name in _MEASURES)


def _policy(snapshot: ClusterSnapshot) -> PolicyLimits:
    return snapshot.input(PolicyLimits) or PolicyLimits.by_default()


def _limits(snapshot: ClusterSnapshot) -> MeasureLimits:
    policy = _policy(snapshot)
    return MeasureLimits(policy.replication or np.inf, policy.imbalance, policy.load)


def _costs(model: LoadModel) -> Floats:
    """Return the cost of the move of each unit: half of it for its state, 1 on average."""
    mean = float(model.state.mean()) if len(model.state) else 0.0
    share: Floats = model.state / mean if mean else np.ones(len(model.state))
    return 0.5 + 0.5 * share


def _movable(snapshot: ClusterSnapshot, model: LoadModel) -> Flags:
    """Return which units no exclusion of a query or a stream keeps where they are, bool[u]."""
    excluded = set(snapshot.excluded)
    names = {query.id: query.name for query in snapshot.queries}
    names |= {query.id: query.name for query in snapshot.split}
    kept = {query for query, name in names.items() if Excluded("query", name) in excluded}
    kept |= {
        query.id
        for query in snapshot.queries
        if any(Excluded("stream", stream) in excluded for stream in query.streams)
    }
    queries = [*model.ids.tolist(), *(query for query, _ in model.tasks)]
    free = np.array([query not in kept for query in queries], np.bool_)
    # Where nothing is left to move, the plan is made without exclusions, which then forbid it.
    return free if free.any() else ~free
