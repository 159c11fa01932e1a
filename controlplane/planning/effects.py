"""What each move of a plan is worth: how every measure changes when it alone is left out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from algorithms.vocabulary import Floats, Ints
from controlplane.planning import arrays
from controlplane.planning.arrays import QueryArrays
from controlplane.planning.execution_plan import tasks_of
from controlplane.planning.snapshot import ClusterSnapshot

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Effect:
    """The changes when the move at a place is left out of the plan: without it less with it.

    A positive change of imbalance or replication factor says that the move does good. bytes are
    spared, so below 0; worst and worst_share: the index of the node that is the worst loaded then,
    and its load/capacity.
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
    snapshot: ClusterSnapshot, moves: Sequence[Row], places: Sequence[int] | range | None = None
) -> list[Effect]:
    """Return the effects of moves of one task each, of those at `places` or of all.

    No measure is taken anew: what changes is at the two nodes of the move.
    """
    wanted = np.arange(len(moves)) if places is None else np.array(places, np.int64)
    if not len(wanted):
        return []
    board = _Board(snapshot, moves)
    chosen = [moves[at] for at in wanted.tolist()]
    sources, targets, less, more = board.undone(chosen)
    imbalance, worst, share = board.without(sources, targets, less, more)
    traffic = np.round(more - less, 9) / board.live if board.live else np.zeros(len(wanted))
    columns = (
        wanted, np.round(imbalance, 9), traffic, board.indices[worst], share,
    )  # fmt: skip
    return [
        Effect(place, change, factor, -move["bytes"], index, its_share)
        for move, place, change, factor, index, its_share in zip(
            chosen, *(column.tolist() for column in columns), strict=True
        )
    ]


class _Board:
    """Nodes, readers and loads after all moves of a plan.

    `readers` int64[nodes, streams]: how many queries of one task read a stream on a node.
    """

    def __init__(self, snapshot: ClusterSnapshot, moves: Sequence[Row]) -> None:
        self.snapshot = snapshot
        self.indices = np.array([node.index for node in snapshot.nodes], np.int64)
        self.capacities = arrays.capacities_of(snapshot)
        self.rates = arrays.rates_of(snapshot)
        self.queries = QueryArrays.of(snapshot).after(snapshot, moves)
        self.readers = self.queries.readers(len(self.indices), len(self.rates))
        self.live = float(self.rates[self.readers.any(axis=0)].sum())
        self.work = {query: works for query, _, _, works, _ in snapshot.split}
        self.loads = (self.readers > 0) @ self.rates + self._own(moves)

    def _own(self, moves: Sequence[Row]) -> Floats:
        """Return the records/s of the tasks of split queries on each node after the moves."""
        nodes = {index: at for at, index in enumerate(self.indices.tolist())}
        own = np.zeros(len(nodes))
        for _, _, spans, works, _ in self.snapshot.split:
            for node, first, past in spans:
                own[nodes[node]] += sum(works[first:past])
        for move in moves if self.work else ():
            if move["query"] in self.work:
                load = self._load(move)
                own[nodes[move["from"]]] -= load
                own[nodes[move["to"]]] += load
        return own

    def _load(self, move: Row) -> float:
        """Return the records/s of the task of a split query that moves."""
        return float(self.work[move["query"]][tasks_of(move)[0]])

    def undone(self, moves: Sequence[Row]) -> tuple[Ints, Ints, Floats, Floats]:
        """Return source and target of each move, and what these get more and less without it."""
        sources, targets, ids = (
            np.fromiter(map(itemgetter(name), moves), np.int64, len(moves))
            for name in ("from", "to", "query")
        )
        sources, targets = (
            arrays.node_positions(self.snapshot, nodes) for nodes in (sources, targets)
        )
        at, known = arrays.positions_if_known(self.queries.ids, ids)
        rows, owner = self._entries(at, known)
        alone = self.readers[targets[owner], rows] == 1
        gone = self.readers[sources[owner], rows] == 0
        less, more = (
            np.bincount(owner, self.rates[rows] * changes, len(moves)).astype(np.float64)
            for changes in (alone, gone)
        )
        for one in np.flatnonzero(~known).tolist():
            less[one] = more[one] = self._load(moves[one])
        return sources, targets, less, more

    def _entries(self, at: Ints, known: Any) -> tuple[Ints, Ints]:
        """Return the streams that the queries at these positions read, and whose each is."""
        indptr, streams = self.queries.indptr, self.queries.streams
        if not len(self.queries.ids):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        lengths = np.where(known, indptr[at + 1] - indptr[at], 0)
        owner = np.repeat(np.arange(len(at)), lengths)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return streams[np.repeat(indptr[at], lengths) + within], owner

    def without(
        self, sources: Ints, targets: Ints, less: Floats, more: Floats
    ) -> tuple[Floats, Ints, Floats]:
        """Return the change of imbalance, the worst node and its load/capacity without each move.

        Of the nodes that are no part of a move the worst is one of the three worst of all.
        """
        shares = self.loads / self.capacities
        lowered = shares[targets] - less / self.capacities[targets]
        raised = shares[sources] + more / self.capacities[sources]
        worst, share = _worst_of_others(shares, sources, targets)
        for nodes, values in ((sources, raised), (targets, lowered)):
            better = (values > share) | ((values == share) & (nodes < worst))
            worst, share = np.where(better, nodes, worst), np.where(better, values, share)
        total = shares.sum() + (lowered - shares[targets]) + (raised - shares[sources])
        imbalance = float(shares.max() - shares.mean())
        return share - total / len(shares) - imbalance, worst, share


def _worst_of_others(shares: Floats, sources: Ints, targets: Ints) -> tuple[Ints, Floats]:
    """Return the worst loaded node besides source and target of each move, and its share."""
    worst = np.full(len(sources), len(shares), np.int64)
    share = np.full(len(sources), -np.inf)
    # The last of the three is written first, so that a worse one replaces it.
    for node in np.argsort(-shares, kind="stable")[:3][::-1].tolist():
        other = (sources != node) & (targets != node)
        worst, share = np.where(other, node, worst), np.where(other, shares[node], share)
    return worst, share
