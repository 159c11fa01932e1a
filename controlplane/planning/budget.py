"""Plans under a budget: which of a plan's moves are made when not all may be.

A budget is {"bytes", "moves", "pause_ms", "share"}, each of them optional: bytes of state, the
number of moves, the pauses of all tasks together, and a share of the plan's own bytes (of its
moves where no state is known). A move pauses its task for one step and for as long as its bytes
take at the policy's bytes/s.

What is chosen is as balanced as the whole plan if the budget allows it, else as balanced as may be;
among what is equally balanced it has the least traffic, hence the least replication factor.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from algorithms.subset import Choice, SubsetProblem, choose
from controlplane.errors import Invalid
from controlplane.planning.execution_plan import Board, Caps, singles, tasks_of
from controlplane.planning.snapshot import ClusterSnapshot

Row = Mapping[str, Any]
KINDS: Final = ("bytes", "moves", "pause_ms")
NAMES: Final = (*KINDS, "share")


@dataclass(frozen=True)
class Afforded:
    """The moves that a budget allows, in the order given; told is what a proposal says of it."""

    moves: list[Row]
    told: dict[str, Any]


def checked_budget(given: Any) -> dict[str, float]:
    """Return a budget as it is kept, without what is not limited; raises `Invalid`."""
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


def afforded(
    snapshot: ClusterSnapshot,
    moves: Sequence[Row],
    budget: Mapping[str, float],
    caps: Caps,
    step_s: float,
    progress: Callable[[float], None] = lambda _: None,
) -> Afforded:
    """Return the moves (with their bytes) that are worth most within the budget."""
    single = singles(moves)
    costs = _costs(single, caps, step_s)
    limits = _limits(budget, costs)
    first = _first(snapshot, single, costs, limits)
    rest = sorted(set(range(len(single))) - set(first))
    choice = choose(_problem(snapshot, single, first, rest, costs, limits), progress)
    chosen = sorted([*first, *(rest[at] for at in choice.chosen)])
    told = _told(snapshot, costs, chosen, choice) | {"limits": dict(budget)}
    return Afforded([single[at] for at in chosen], told)


def _first(
    snapshot: ClusterSnapshot, moves: Sequence[Row], costs: Any, limits: Mapping[str, float]
) -> list[int]:
    """Return the moves off nodes that are to host nothing, the cheapest that can be afforded.

    They come before all that only balances: such a node is lost or being emptied.
    """
    active = {node.index for node in snapshot.nodes if node.active}
    leaving = [at for at, move in enumerate(moves) if move["from"] not in active]
    allowed = np.array([limits.get(name, math.inf) for name in KINDS])
    spent, chosen = np.zeros(len(KINDS)), []
    for at in sorted(leaving, key=lambda at: (costs[at].tolist(), at)):
        if (spent + costs[at] <= allowed).all():
            spent += costs[at]
            chosen.append(at)
    return chosen


def _problem(
    snapshot: ClusterSnapshot,
    moves: Sequence[Row],
    first: Sequence[int],
    rest: Sequence[int],
    costs: Any,
    limits: Mapping[str, float],
) -> SubsetProblem:
    """Return the problem of choosing among the rest once the first moves are made."""
    board = Board.of(snapshot)
    units = dict(board.units)
    for at in first:
        key = (moves[at]["query"], tasks_of(moves[at])[0])
        units[key] = (units[key][0], board.nodes[moves[at]["to"]])
    kinds = [at for at, name in enumerate(KINDS) if name in limits]
    spent = costs[np.array(first, np.int64)].sum(axis=0)
    return SubsetProblem(
        board.rates,
        board.capacities,
        units.values(),
        board.steps([moves[at] for at in rest]),
        costs[np.array(rest, np.int64)][:, kinds],
        [max(0.0, limits[KINDS[at]] - float(spent[at])) for at in kinds],
    )


def _costs(moves: Sequence[Row], caps: Caps, step_s: float) -> Any:
    sent = np.array([float(move["bytes"]) for move in moves])
    pauses = 1000 * (step_s + sent / caps.bytes_per_s)
    return np.column_stack([sent, np.ones(len(moves)), pauses])


def _limits(budget: Mapping[str, float], costs: Any) -> dict[str, float]:
    limits = {name: float(budget[name]) for name in KINDS if name in budget}
    if "share" in budget:
        total = costs.sum(axis=0)
        kind = "bytes" if total[0] > 0 else "moves"
        allowed = budget["share"] * float(total[KINDS.index(kind)])
        limits[kind] = min(allowed, limits.get(kind, math.inf))
    return limits


def _told(
    snapshot: ClusterSnapshot, costs: Any, chosen: Sequence[int], choice: Choice
) -> dict[str, Any]:
    spent = costs[np.array(chosen, np.int64)].sum(axis=0)
    live = sum(rate for _, rate in snapshot.streams)
    split = sum(sum(work) for _, _, _, work, _ in snapshot.split)
    bound = choice.traffic_bound
    return {
        "used": {name: round(float(spent[at]), 1) for at, name in enumerate(KINDS)},
        "whole": {name: round(float(costs[:, at].sum()), 1) for at, name in enumerate(KINDS)},
        "left_out": len(costs) - len(chosen),
        "imbalance_bound": choice.imbalance_bound,
        "replication_bound": (bound - split) / live if bound is not None and live else None,
        "proven": choice.proven,
    }
