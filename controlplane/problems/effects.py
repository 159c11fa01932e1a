"""What each move of a plan is worth: how every measure changes when it alone is left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from algorithms.ordering import Loads, Move
from controlplane.problems.carrying import Board

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Effect:
    """The changes when the move at a place is left out of the plan: without it less with it.

    A positive change of imbalance or replication factor says that the move does good. bytes and
    moves are spared; worst and worst_share: the index of the worst loaded node then, and its
    load/capacity.
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
    snapshot: Row, moves: Sequence[Row], places: Sequence[int] | range | None = None
) -> list[Effect]:
    """Return the effects of moves of one task each, of those at `places` or of all."""
    wanted = range(len(moves)) if places is None else places
    board = Board.of(snapshot)
    steps = board.steps(moves)
    loads = board.loads()
    for step in steps:
        loads.take(step.unit, step.source)
        loads.put(step.unit, step.target)
    live = _live(board)
    indices = [node["index"] for node in snapshot["nodes"]]
    found = _without_each(loads, [steps[at] for at in wanted])
    return [
        Effect(at, imbalance, traffic / live if live else 0.0, -moves[at]["bytes"],
               indices[worst], share)
        for at, (imbalance, traffic, worst, share) in zip(wanted, found, strict=True)
    ]  # fmt: skip


def _without_each(loads: Loads, steps: Sequence[Move]) -> Iterator[tuple[float, float, int, float]]:
    """Yield changes of imbalance and traffic, and the worst node with its share, without each.

    `loads` is as after all moves, and again so in the end.
    """
    before = loads.shares
    imbalance, traffic = float(before.max() - before.mean()), float(loads.loads.sum())
    for step in steps:
        loads.take(step.unit, step.target)
        loads.put(step.unit, step.source)
        shares = loads.shares
        worst = int(np.argmax(shares))
        yield (
            round(float(shares[worst] - shares.mean()) - imbalance, 9),
            round(float(loads.loads.sum()) - traffic, 9),
            worst,
            float(shares[worst]),
        )
        loads.take(step.unit, step.source)
        loads.put(step.unit, step.target)


def _live(board: Board) -> float:
    """Return the records/s of the streams that a query of one task reads."""
    read = {source for unit, _ in board.units.values() for source in unit.sources}
    return sum(board.rates[source] for source in read)
