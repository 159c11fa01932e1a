"""Moves as they are carried out: their order, their steps, what they take, and the way back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from algorithms.ordering import Move, MoveSet, Unit, Units, order_moves
from algorithms.vocabulary import Ints
from controlplane.planning import arrays
from controlplane.planning.arrays import QueryArrays
from controlplane.planning.snapshot import ClusterSnapshot

Row = Mapping[str, Any]
Moves = Sequence[Row]


@dataclass(frozen=True)
class Caps:
    """Bounds of one step: moves that a node takes part in, moves in all; bytes of state per second.

    A step has one move at least, whatever its size.
    """

    node_moves: int
    cluster_moves: int
    bytes_per_s: float


@dataclass(frozen=True)
class Ordered:
    """Moves in the order of their carrying out; path: the imbalance after each.

    safe: whether no node is worse loaded on the way than the worst one at the beginning.
    """

    moves: list[dict[str, Any]]
    path: list[float]
    safe: bool


def tasks_of(move: Row) -> tuple[int, int]:
    """Return which tasks of its query a move takes along: [first, past)."""
    return move.get("first", 0), move.get("past", 1)


def in_order(snapshot: ClusterSnapshot, moves: Moves) -> Ordered:
    """Return the moves in an order in which operators can stop anywhere."""
    single = singles(moves)
    found = order_moves(_move_set(snapshot, single))
    return Ordered(
        [dict(single[at]) for at in found.order],
        np.round(found.imbalance, 6).tolist(),
        found.safe,
    )


def _move_set(snapshot: ClusterSnapshot, moves: Moves) -> MoveSet:
    """Return moves of one task each as arrays. Raises `KeyError` on an unknown task or node."""
    queries = QueryArrays.of(snapshot)
    tasks = _split_tasks(snapshot)
    units = Units(
        np.concatenate([queries.indptr, np.full(len(tasks.own), queries.indptr[-1])]),
        queries.streams,
        np.concatenate([np.zeros(len(queries.ids)), tasks.own]),
        np.concatenate([queries.nodes, tasks.nodes]),
    )
    moving = _units_of(queries, tasks, moves)
    targets = np.fromiter(map(itemgetter("to"), moves), np.int64, len(moves))
    return MoveSet.from_units(
        arrays.rates_of(snapshot),
        arrays.capacities_of(snapshot),
        units,
        moving,
        arrays.node_positions(snapshot, targets),
    )


@dataclass(frozen=True)
class _SplitTasks:
    """Tasks of split queries: their position by query and task, records/s and node of each."""

    positions: Mapping[tuple[int, int], int]
    own: Any
    nodes: Ints


def _split_tasks(snapshot: ClusterSnapshot) -> _SplitTasks:
    rows = [
        (query, task, work[task], node)
        for query, _, spans, work, _ in snapshot.split
        for node, first, past in spans
        for task in range(first, past)
    ]
    nodes = np.array([node for *_, node in rows], np.int64)
    return _SplitTasks(
        {(query, task): at for at, (query, task, *_) in enumerate(rows)},
        np.array([work for _, _, work, _ in rows], np.float64),
        arrays.node_positions(snapshot, nodes),
    )


def _units_of(queries: QueryArrays, tasks: _SplitTasks, moves: Moves) -> Ints:
    """Return which unit each move moves: queries of one task first, then tasks of split ones."""
    wanted = np.fromiter(map(itemgetter("query"), moves), np.int64, len(moves))
    units, known = arrays.positions_if_known(queries.ids, wanted)
    for at in np.flatnonzero(~known).tolist():
        key = moves[at]["query"], tasks_of(moves[at])[0]
        units[at] = len(queries.ids) + tasks.positions[key]
    return units


@dataclass(frozen=True)
class Board:
    """A snapshot in the words of `algorithms.ordering`: positions of nodes and sources.

    units: what moves as a whole, with its node, by query and task; nodes: position by node index.
    """

    rates: list[float]
    capacities: list[float]
    units: Mapping[tuple[int, int], tuple[Unit, int]]
    nodes: Mapping[int, int]

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "Board":
        """Read a snapshot."""
        nodes = {node.index: at for at, node in enumerate(snapshot.nodes)}
        return cls(
            [rate for _, rate in snapshot.streams],
            [node.capacity for node in snapshot.nodes],
            {key: (unit, nodes[node]) for key, (unit, node) in _units(snapshot).items()},
            nodes,
        )

    def steps(self, moves: Moves) -> list[Move]:
        """Return moves of one task each as what is carried out."""
        return [
            Move(
                self.units[one["query"], tasks_of(one)[0]][0],
                self.nodes[one["from"]],
                self.nodes[one["to"]],
            )
            for one in moves
        ]


def singles(moves: Moves) -> list[Row]:
    """Return the moves with one task each."""
    return [
        one if tasks_of(one) == (task, task + 1) else {**one, "first": task, "past": task + 1}
        for one in moves
        for task in range(*tasks_of(one))
    ]


def _units(snapshot: ClusterSnapshot) -> dict[tuple[int, int], tuple[Unit, int]]:
    """Return what moves as a whole, with the index of its node, by query and task."""
    sources = {stream: at for at, (stream, _) in enumerate(snapshot.streams)}
    found: dict[tuple[int, int], tuple[Unit, int]] = {
        (query, 0): (Unit(tuple(sources[stream] for stream in streams)), node)
        for query, _, node, streams in snapshot.queries
    }
    for query, _, spans, work, _ in snapshot.split:
        for node, first, past in spans:
            for task in range(first, past):
                found[query, task] = Unit(load=work[task]), node
    return found


def priced(snapshot: ClusterSnapshot, moves: Moves) -> list[dict[str, Any]]:
    """Return the moves with the bytes of state that each takes along, as last measured."""
    state = snapshot.state
    return [{**move, "bytes": move.get("bytes", state.get(move["query"], 0))} for move in moves]


def allowed(snapshot: ClusterSnapshot, moves: Moves) -> list[dict[str, Any]]:
    """Return the moves that no exclusion forbids."""
    excluded = {(kind, subject) for kind, subject in snapshot.excluded}
    if not excluded:
        return [dict(move) for move in moves]
    names = {node.index: node.name for node in snapshot.nodes}
    streams = {query: read for query, _, _, read in snapshot.queries}
    shielded = {subject for kind, subject in excluded if kind == "stream"}
    return [
        dict(move)
        for move in moves
        if ("query", move["name"]) not in excluded
        and ("node", names[move["from"]]) not in excluded
        and ("node", names[move["to"]]) not in excluded
        and shielded.isdisjoint(streams.get(move["query"], ()))
    ]


def next_step(moves: Moves, first: int, caps: Caps, seconds: float) -> int:
    """Return where the step that begins at `first` ends: as many moves as the caps allow.

    `seconds`: how long a step takes, within which its bytes must go over.
    """
    # More moves than the cap no step has.
    return first + _step_end(
        _Columns.of(moves[first : first + caps.cluster_moves + 1]), 0, caps, seconds
    )


@dataclass(frozen=True)
class _Columns:
    """What decides the size of a step: both nodes and the bytes of each move."""

    sources: list[int]
    targets: list[int]
    sizes: list[int]

    @classmethod
    def of(cls, moves: Moves) -> "_Columns":
        """Read moves."""
        return cls(
            [move["from"] for move in moves],
            [move["to"] for move in moves],
            [move["bytes"] for move in moves],
        )


def _step_end(columns: _Columns, first: int, caps: Caps, seconds: float) -> int:
    """Return where the step that begins at `first` ends."""
    busy: dict[int, int] = {}
    sent, most_bytes = 0, caps.bytes_per_s * seconds
    for at in range(first, len(columns.sizes)):
        sent += columns.sizes[at]
        source, target = columns.sources[at], columns.targets[at]
        of_source, of_target = busy.get(source, 0), busy.get(target, 0)
        full = (
            at - first >= caps.cluster_moves
            or of_source >= caps.node_moves
            or of_target >= caps.node_moves
            or sent > most_bytes
        )
        if full and at > first:
            return at
        busy[source], busy[target] = of_source + 1, of_target + 1
    return len(columns.sizes)


def first_cap(most: int) -> int:
    """Return how many moves the first step of a way may have, if the policy allows `most`."""
    return max(1, most // 4)


def price(moves: Moves, caps: Caps, step_s: float) -> dict[str, Any]:
    """Return what carrying these moves out takes, a step taking so many seconds.

    Where no step is slow: from few moves at once on, each step has one more.
    """
    columns = _Columns.of(moves)
    steps, at, cap = 0, 0, first_cap(caps.cluster_moves)
    while at < len(moves):
        at = _step_end(columns, at, replace(caps, cluster_moves=cap), step_s)
        steps, cap = steps + 1, min(cap + 1, caps.cluster_moves)
    sent = sum(columns.sizes)
    return {
        "moves": len(moves),
        "bytes": sent,
        "steps": steps,
        # A task's records of one batch meet its state where it was, those of the next where it is.
        "pause_ms": round(step_s * 1000),
        "seconds": round(max(steps * step_s, sent / caps.bytes_per_s), 1),
    }


def backwards(moves: Moves) -> list[dict[str, Any]]:
    """Return the compensating plan: the moves that undo these, the last first."""
    return [
        {**move, "from": move["to"], "to": move["from"], "outcome": None, "note": ""}
        for move in reversed(moves)
    ]
