"""What each move of a plan is worth: how every measure changes when it alone is left out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np

from controlplane.problems.carrying import tasks_of

Row = Mapping[str, Any]


@dataclass(frozen=True)
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
    snapshot: Row, moves: Sequence[Row], places: Sequence[int] | range | None = None
) -> list[Effect]:
    """Return the effects of moves of one task each, of those at `places` or of all.

    No measure is taken anew: what changes is at the two nodes of the move.
    """
    wanted = range(len(moves)) if places is None else places
    if not wanted:
        return []
    board = _Board(snapshot, moves)
    indices = [node["index"] for node in snapshot["nodes"]]
    return [
        Effect(at, imbalance, traffic / board.live if board.live else 0.0, -moves[at]["bytes"],
               indices[worst], share)
        for at, imbalance, traffic, worst, share in _without_each(board, moves, wanted)
    ]  # fmt: skip


def _without_each(
    board: "_Board", moves: Sequence[Row], wanted: Sequence[int] | range
) -> Iterator[tuple[int, float, float, int, float]]:
    """Yield changes of imbalance and traffic, and the worst node with its share, without each."""
    before = board.loads / board.capacities
    imbalance = float(before.max() - before.mean())
    for at in wanted:
        source, target, less, more = board.undone(moves[at])
        shares = before.copy()
        shares[target] -= less / board.capacities[target]
        shares[source] += more / board.capacities[source]
        worst = int(np.argmax(shares))
        change = float(shares[worst] - shares.mean()) - imbalance
        yield at, round(change, 9), round(more - less, 9), worst, float(shares[worst])


class _Board:
    """Nodes, readers and loads after all moves of a plan.

    `readers` int64[nodes, streams]: how many queries of one task read a stream on a node.
    """

    def __init__(self, snapshot: Row, moves: Sequence[Row]) -> None:
        self.nodes = {node["index"]: at for at, node in enumerate(snapshot["nodes"])}
        self.capacities = np.array([node["capacity"] for node in snapshot["nodes"]])
        self.rates = np.array([rate for _, rate in snapshot["streams"]], np.float64)
        streams = {stream: at for at, (stream, _) in enumerate(snapshot["streams"])}
        self.readers = self._readers(snapshot["queries"], streams)
        self.live = float(self.rates[self.readers.any(axis=0)].sum())
        moving = {move["query"] for move in moves}
        self.read = {
            query: [streams[one] for one in read]
            for query, _, _, read in snapshot["queries"]
            if query in moving
        }
        self.work = {query: works for query, _, _, works, _ in snapshot["split"]}
        self.own = self._own(snapshot["split"])
        for move in moves:
            self._make(move)
        self.loads = (self.readers > 0) @ self.rates + self.own

    def _readers(self, queries: Sequence[Any], streams: Mapping[int, int]) -> Any:
        reads = [read for _, _, _, read in queries]
        owners = [self.nodes[node] for _, _, node, _ in queries]
        rows = np.repeat(np.array(owners, np.int64), [len(read) for read in reads])
        columns = np.array([streams[one] for one in chain.from_iterable(reads)], np.int64)
        shape = len(self.nodes), len(streams)
        flat = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
        return flat.reshape(shape)

    def _own(self, split: Sequence[Any]) -> Any:
        """Return the records/s of the tasks of split queries on each node."""
        own = np.zeros(len(self.nodes))
        for _, _, spans, works, _ in split:
            for node, first, past in spans:
                own[self.nodes[node]] += sum(works[first:past])
        return own

    def _make(self, move: Row) -> None:
        source, target = self.nodes[move["from"]], self.nodes[move["to"]]
        read = self.read.get(move["query"])
        if read is None:
            load = self.work[move["query"]][tasks_of(move)[0]]
            self.own[source] -= load
            self.own[target] += load
        else:
            self.readers[source, read] -= 1
            self.readers[target, read] += 1

    def undone(self, move: Row) -> tuple[int, int, float, float]:
        """Return source and target of a move, and what these get more and less without it."""
        source, target = self.nodes[move["from"]], self.nodes[move["to"]]
        read = self.read.get(move["query"])
        if read is None:
            load = float(self.work[move["query"]][tasks_of(move)[0]])
            return source, target, load, load
        rates = self.rates[read]
        less = float(rates[self.readers[target, read] == 1].sum())
        more = float(rates[self.readers[source, read] == 0].sum())
        return source, target, less, more
