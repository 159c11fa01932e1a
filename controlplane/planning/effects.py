"""Effects of single actions: the changes of measures if a plan omits an action."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from algorithms.balance import imbalance
from algorithms.vocabulary import Floats
from controlplane.formats.json_values import JsonValue
from controlplane.planning import arrays
from controlplane.planning.load_model import LoadModel
from controlplane.plans.plan import PlannedAction, TaskMove
from controlplane.plans.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Effect(JsonValue):
    """The changes if the plan omits the action at `place`: value without it minus value with it.

    A positive change of imbalance or replication factor means that the action improves it. `bytes`
    is negative. `worst`, `worst_share`: the index of the worst loaded node without the action, and
    its load/capacity.
    """

    place: int
    imbalance: float
    replication_factor: float
    bytes: int
    worst: int
    worst_share: float


def effects(
    snapshot: ClusterSnapshot,
    plan: Sequence[PlannedAction],
    places: Sequence[int] | range | None = None,
) -> list[Effect]:
    """Return the effects of the actions of a plan, at `places` or of all.

    The effect of a move is computed from its two nodes alone.
    """
    wanted = range(len(plan)) if places is None else places
    if not wanted:
        return []
    before = LoadModel.of(snapshot)
    after = before.after(plan)
    chosen = {place: plan[place] for place in wanted}
    moves = {place: move for place, move in chosen.items() if isinstance(move, TaskMove)}
    result = _effects_of_moves(after, moves)
    for place in chosen.keys() - moves.keys():
        without = before.after([*plan[:place], *plan[place + 1 :]])
        shares = without.loads / without.capacities
        factor = (without.replication_factor or 0.0) - (after.replication_factor or 0.0)
        result[place] = _effect(place, after, shares, factor)
    return [result[place] for place in wanted]


def _effect(place: int, after: LoadModel, shares: Floats, factor: float, size: int = 0) -> Effect:
    """Return an effect; `shares`: load/capacity of the nodes without the action, float64[k]."""
    worst = int(np.argmax(shares))
    change = imbalance(shares) - imbalance(after.loads / after.capacities)
    index, share = int(after.indices[worst]), float(shares[worst])
    return Effect(place, round(change, 9), round(factor, 9), size, index, share)


def _effects_of_moves(model: LoadModel, moves: Mapping[int, TaskMove]) -> dict[int, Effect]:
    listed = list(moves.values())
    units, targets = model.units_of(listed)
    sources = arrays.positions(model.indices, np.array([move.source for move in listed], np.int64))
    result = {}
    for (place, move), unit, source, target in zip(
        moves.items(), units.tolist(), sources.tolist(), targets.tolist(), strict=True
    ):
        loads = _loads_without(model, unit, source, target)
        factor = float((loads - model.loads).sum() / model.live) if model.live else 0.0
        result[place] = _effect(place, model, loads / model.capacities, factor, -move.bytes)
    return result


def _loads_without(model: LoadModel, unit: int, source: int, target: int) -> Floats:
    """Return the loads without the move of a unit from a node to another."""
    if model.is_partial[unit]:
        # Its part depends on the other tasks of both nodes.
        return model.moved(unit, source).loads
    loads = model.loads.copy()
    loads[source] += model.added_to(unit, source)
    loads[target] -= model.removed_from(unit, target)
    return loads
