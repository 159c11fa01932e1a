"""Plans under a budget: the choice of moves whose cost a budget allows.

Only moves of tasks have a cost; actions of other kinds stay in the plan.

A budget is {"bytes", "moves", "pause_ms", "share"}, all optional: bytes of state, the number of
moves, the sum of the pauses of all tasks, and a share of the plan's bytes (of its moves if no state
is known). A move pauses its task for one step and for the transfer of its bytes at the policy's
bytes/s.

The chosen moves balance the cluster as well as the whole plan does, or as well as the budget
allows; among equally balanced choices they have the lowest traffic and replication factor.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.subset import ChosenMoves, SubsetProblem, choose
from controlplane.errors import Invalid
from controlplane.planning.execution_plan import StepLimits, move_set
from controlplane.planning.load_model import LoadModel
from controlplane.plans.plan import PlannedAction, TaskMove, task_moves
from controlplane.plans.snapshot import ClusterSnapshot

KINDS: Final = ("bytes", "moves", "pause_ms")
NAMES: Final = (*KINDS, "share")


@dataclass(frozen=True)
class BudgetedPlan:
    """The actions that a budget allows, in their order; `summary`: for the proposal."""

    plan: list[PlannedAction]
    summary: dict[str, Any]


def checked_budget(given: Any) -> dict[str, float]:
    """Return a checked budget without empty limits; raises `Invalid`."""
    if given is None or given == {}:
        return {}
    if not isinstance(given, Mapping):
        raise Invalid({"budget": [f"Must have some of {', '.join(NAMES)}"]})
    faults = [fault for name, value in given.items() if (fault := _fault(str(name), value))]
    if faults:
        raise Invalid({"budget": faults})
    return {name: given[name] for name in NAMES if given.get(name) is not None}


def _fault(name: str, value: Any) -> str:
    if name not in NAMES:
        return f"Knows no {name[:40]}, but {', '.join(NAMES)}"
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return f"{name} must be a number"
    if value < 0 or (name == "share" and value > 1):
        return f"{name} must be {'0 to 1' if name == 'share' else '0 or more'}"
    return ""


def fit_to_budget(
    snapshot: ClusterSnapshot,
    plan: Sequence[PlannedAction],
    budget: Mapping[str, float],
    step_limits: StepLimits,
    step_s: float,
    progress: Callable[[float], None] = lambda _: None,
) -> BudgetedPlan:
    """Return the plan with the best moves within the budget."""
    places = [place for place, planned in enumerate(plan) if isinstance(planned, TaskMove)]
    moves = task_moves(plan)
    costs = _costs(moves, step_limits, step_s)
    limits = _limits(budget, costs)
    first = _first(snapshot, moves, costs, limits)
    rest = sorted(set(range(len(moves))) - set(first))
    others = [planned for planned in plan if not isinstance(planned, TaskMove)]
    model = LoadModel.of(snapshot).after([*others, *(moves[place] for place in first)])
    problem = _problem(model, moves, first, rest, costs, limits)
    choice = choose(problem, progress)
    chosen = sorted([*first, *(rest[place] for place in choice.chosen)])
    summary = _summary(model, costs, chosen, choice) | {"limits": dict(budget)}
    left_out = set(places) - {places[number] for number in chosen}
    return BudgetedPlan(
        [planned for place, planned in enumerate(plan) if place not in left_out], summary
    )


def _first(
    snapshot: ClusterSnapshot,
    moves: Sequence[TaskMove],
    costs: Any,
    limits: Mapping[str, float],
) -> list[int]:
    """Return the moves that leave inactive nodes, the cheapest ones within the budget.

    They have precedence over balance: such a node is lost or being emptied.
    """
    active = {node.index for node in snapshot.nodes if node.active}
    leaving = [place for place, move in enumerate(moves) if move.source not in active]
    allowed = np.array([limits.get(name, math.inf) for name in KINDS])
    spent, chosen = np.zeros(len(KINDS)), []
    for place in sorted(leaving, key=lambda place: (costs[place].tolist(), place)):
        if (spent + costs[place] <= allowed).all():
            spent += costs[place]
            chosen.append(place)
    return chosen


def _problem(
    model: LoadModel,
    moves: Sequence[TaskMove],
    first: Sequence[int],
    rest: Sequence[int],
    costs: Any,
    limits: Mapping[str, float],
) -> SubsetProblem:
    """Return the problem of the choice among the other moves, after the first moves."""
    kinds = [place for place, name in enumerate(KINDS) if name in limits]
    spent = costs[np.array(first, np.int64)].sum(axis=0)
    return SubsetProblem(
        move_set(model, [moves[place] for place in rest]),
        costs[np.array(rest, np.int64)][:, kinds],
        [max(0.0, limits[KINDS[place]] - float(spent[place])) for place in kinds],
    )


def _costs(moves: Sequence[TaskMove], limits: StepLimits, step_s: float) -> Any:
    sent = np.array([float(move.bytes) for move in moves])
    pauses = 1000 * (step_s + sent / limits.bytes_per_s)
    return np.column_stack([sent, np.ones(len(moves)), pauses])


def _limits(budget: Mapping[str, float], costs: Any) -> dict[str, float]:
    limits = {name: float(budget[name]) for name in KINDS if name in budget}
    if "share" in budget:
        total = costs.sum(axis=0)
        kind = "bytes" if total[0] > 0 else "moves"
        allowed = budget["share"] * float(total[KINDS.index(kind)])
        limits[kind] = min(allowed, limits.get(kind, math.inf))
    return limits


def _summary(
    model: LoadModel, costs: Any, chosen: Sequence[int], choice: ChosenMoves
) -> dict[str, Any]:
    spent = costs[np.array(chosen, np.int64)].sum(axis=0)
    bound, live = choice.traffic_bound, model.live
    return {
        "used": {name: round(float(spent[kind]), 1) for kind, name in enumerate(KINDS)},
        "whole": {name: round(float(costs[:, kind].sum()), 1) for kind, name in enumerate(KINDS)},
        "left_out": len(costs) - len(chosen),
        "imbalance_bound": choice.imbalance_bound,
        "replication_bound": bound / live if bound is not None and live else None,
        "proven": choice.proven,
    }
