"""Effects of single actions: the changes of measures if a plan omits an action."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from algorithms.balance import imbalance
from algorithms.vocabulary import Floats, Ints
from controlplane.planning import arrays
from controlplane.planning.load_model import LoadModel
from controlplane.plans.plan import PlannedAction, TaskMove
from controlplane.plans.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Effect:
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

    def to_json(self) -> dict[str, Any]:
        """Return the effect as JSON values."""
        return asdict(self)


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
        rest = [*plan[:place], *plan[place + 1 :]]
        result[place] = _difference(place, after, before.after(rest))
    return [result[place] for place in wanted]


def _difference(place: int, after: LoadModel, without: LoadModel) -> Effect:
    """Return the effect of an action of any kind; `without`: the loads without it."""
    shares, less = after.loads / after.capacities, without.loads / without.capacities
    worst = int(np.argmax(less))
    factors = [
        float(model.received.sum()) / model.live if model.live else 0.0
        for model in (after, without)
    ]
    return Effect(
        place,
        round(imbalance(less) - imbalance(shares), 9),
        round(factors[1] - factors[0], 9),
        0,
        int(after.indices[worst]),
        float(less[worst]),
    )


def _effects_of_moves(model: LoadModel, moves: Mapping[int, TaskMove]) -> dict[int, Effect]:
    if not moves:
        return {}
    listed = list(moves.values())
    sources, targets, less, more = _undone(model, listed)
    change, worst, share = _without(model, sources, targets, less, more)
    traffic = np.round(more - less, 9) / model.live if model.live else np.zeros(len(listed))
    columns = (np.round(change, 9), traffic, model.indices[worst], share)
    return {
        place: Effect(place, change, factor, -move.bytes, index, its_share)
        for place, move, change, factor, index, its_share in zip(
            moves, listed, *(column.tolist() for column in columns), strict=True
        )
    }


def _undone(model: LoadModel, moves: list[TaskMove]) -> tuple[Ints, Ints, Floats, Floats]:
    """Return source and target of each move, and the changes of their loads without it."""
    units, targets = model.units_of(moves)
    sources = arrays.positions(model.indices, np.array([move.source for move in moves], np.int64))
    rows, owner = _entries(model, units)
    only = model.readers[targets[owner], rows] == 1
    absent = model.readers[sources[owner], rows] == 0
    own = model.own[units]
    less, more = (
        np.bincount(owner, model.rates[rows] * changes, len(moves)).astype(np.float64) + own
        for changes in (only, absent)
    )
    return sources, targets, less, more


def _entries(model: LoadModel, units: Ints) -> tuple[Ints, Ints]:
    """Return the streams that these units read, and the unit of each."""
    lengths = model.indptr[units + 1] - model.indptr[units]
    owner = np.repeat(np.arange(len(units)), lengths)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return model.entries[np.repeat(model.indptr[units], lengths) + within], owner


def _without(
    model: LoadModel, sources: Ints, targets: Ints, less: Floats, more: Floats
) -> tuple[Floats, Ints, Floats]:
    """Return the change of imbalance, the worst node and its load/capacity without each move.

    Apart from the nodes of the move, the worst node is one of the three worst of all.
    """
    shares = model.loads / model.capacities
    lowered = shares[targets] - less / model.capacities[targets]
    raised = shares[sources] + more / model.capacities[sources]
    worst, share = _worst_of_others(shares, sources, targets)
    for nodes, values in ((sources, raised), (targets, lowered)):
        better = (values > share) | ((values == share) & (nodes < worst))
        worst, share = np.where(better, nodes, worst), np.where(better, values, share)
    total = shares.sum() + (lowered - shares[targets]) + (raised - shares[sources])
    return share - total / len(shares) - imbalance(shares), worst, share


def _worst_of_others(shares: Floats, sources: Ints, targets: Ints) -> tuple[Ints, Floats]:
    """Return the worst loaded node except source and target of each move, and its share."""
    worst = np.full(len(sources), len(shares), np.int64)
    share = np.full(len(sources), -np.inf)
    # The third worst is written first, so that worse nodes replace it.
    for node in np.argsort(-shares, kind="stable")[:3][::-1].tolist():
        other = (sources != node) & (targets != node)
        worst, share = np.where(other, node, worst), np.where(other, shares[node], share)
    return worst, share
