"""Loads of the nodes of a cluster, in a snapshot and after actions.

Measures, the order of moves, budgets and the effects of single actions use this model only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, takewhile
from typing import Any, Final, Self

import numpy as np

from algorithms.rows import boundaries, pick_rows
from algorithms.vocabulary import Flags, Floats, Ints
from controlplane.planning import arrays
from controlplane.planning.arrays import QueryArrays
from controlplane.planning.measured.key_loads import predict, stream_of, task_capacities
from controlplane.planning.measured.sampled_keys import PartitioningInput
from controlplane.plans.plan import PlannedAction, TaskMove
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.cluster_actions import SetCapacity, SetDropRule
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.query_actions import SetKeyGrouping, SetTaskCount

# A smaller part of the records of a query is none.
LEAST_ADDED: Final = 0.01

Task = tuple[int, int]
# Query, task, node, share of the query's records, bytes of state.
SplitTask = tuple[int, int, int, float, int]


@dataclass(frozen=True)
class LoadModel:
    """The loads of k nodes by s streams and u units (queries or tasks that move as a whole).

    `indices` int64[k], `capacities` float64[k]: index and records/s of each node. `streams`
    int64[s]: ids; `offered`, `rates` float64[s]: records/s before and after the drop rules of the
    input edges. `queries` int64[u]: the query of each unit; the first units are those of one task,
    the others are the tasks of split queries, `tasks` by (query, task). The streams that units read
    are the rows `indptr` int64[u + 1] of `entries` int64[e], positions of streams. `shares`
    float64[u]: the part of their records that a unit reads, 1 of a query of one task; `nodes`
    int64[u]: the position of its node; `state` int64[u]: its bytes. `sampled`: the sampled keys of
    split queries, from which the effect of other key groupings is predicted.

    A node receives a record once for all its units that read it. So a task adds what no query of
    one task on its node reads; of tasks of several queries, as if their keys were independent.
    Drop rules between a stream and a query have no effect for the same reason.
    """

    indices: Ints
    capacities: Floats
    streams: Ints
    offered: Floats
    rates: Floats
    queries: Ints
    tasks: Mapping[Task, int]
    indptr: Ints
    entries: Ints
    shares: Floats
    nodes: Ints
    state: Ints
    sampled: PartitioningInput | None = None

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> Self:
        """Return the loads of a snapshot. Raises `KeyError` on an unknown node or stream."""
        queries = QueryArrays.of(snapshot)
        rows = list(_split_tasks(snapshot))
        nodes = arrays.node_positions(snapshot, np.array([row[2] for row in rows], np.int64))
        count, offered = len(queries.ids), arrays.rates_of(snapshot)
        streams = np.array([stream.id for stream in snapshot.streams], np.int64)
        state = map(snapshot.state.get, queries.ids.tolist(), np.zeros(count, np.int64).tolist())
        whole = cls(
            np.array([node.index for node in snapshot.nodes], np.int64),
            arrays.capacities_of(snapshot),
            streams,
            offered,
            offered * _kept(streams, snapshot),
            queries.ids,
            {},
            queries.indptr,
            queries.streams,
            np.ones(count),
            queries.nodes,
            np.fromiter(state, np.int64, count),
            snapshot.input(PartitioningInput),
        )
        places = zip(rows, nodes.tolist(), strict=True)
        read = {
            query.id: arrays.positions(streams, np.array(query.streams, np.int64))
            for query in snapshot.split
        }
        split = [(q, t, node, share, size) for (q, t, _, share, size), node in places]
        return whole.with_split(split, read)

    @property
    def ids(self) -> Ints:
        """Return the ids of the queries of one task, int64[u - tasks]."""
        return self.queries[: len(self.queries) - len(self.tasks)]

    def after(self, plan: Iterable[PlannedAction]) -> Self:
        """Return the loads after these actions. Raises `KeyError` on an unknown node."""
        model, moves = self, []
        for planned in plan:
            if isinstance(planned, TaskMove):
                moves.append(planned)
                continue
            action = planned.action
            if isinstance(action, SetCapacity):
                changed = np.where(self.indices == action.node, action.capacity, model.capacities)
                model = replace(model, capacities=changed)
            elif isinstance(action, SetDropRule) and action.query == INPUT:
                kept = self.offered * (1 - last_share(action.rule))
                rates = np.where(self.streams == action.stream, kept, model.rates)
                model = replace(model, rates=rates)
            elif isinstance(action, SetTaskCount):
                model, moves = model.with_moves(moves).with_task_count(action), []
            elif isinstance(action, SetKeyGrouping):
                model, moves = model.with_moves(moves).with_key_grouping(action), []
        return model.with_moves(moves)

    def with_moves(self, moves: list[TaskMove]) -> Self:
        """Return the loads after moves of tasks."""
        if not moves:
            return self
        units, targets = self.units_of(moves)
        nodes = self.nodes.copy()
        # Queries that started later or ended are not in the snapshot.
        known = units >= 0
        nodes[units[known]] = targets[known]
        return replace(self, nodes=nodes)

    def with_task_count(self, action: SetTaskCount) -> Self:
        """Return the loads with as many tasks of a query, which share its records evenly."""
        rows = [(query, task, int(self.nodes[unit]), float(self.shares[unit]),
                 int(self.state[unit])) for (query, task), unit in self.tasks.items()]  # fmt: skip
        others = [row for row in rows if row[0] != action.query]
        present = sorted(row for row in rows if row[0] == action.query)
        if not present:
            return self
        kept = [(node, size) for _, _, node, _, size in present[: action.tasks]]
        added = [node for node, first, stop in action.added for _ in range(first, stop)]
        places = arrays.positions(self.indices, np.array(added, np.int64)).tolist()
        tasks = [*kept, *((place, 0) for place in places)]
        rows = [*others, *((action.query, task, node, 1 / action.tasks, size)
                           for task, (node, size) in enumerate(tasks))]  # fmt: skip
        read = {query: self._streams_of(unit) for (query, _), unit in self.tasks.items()}
        return self.with_split(rows, read)

    def _streams_of(self, unit: int) -> Ints:
        """Return the positions of the streams that a unit reads."""
        return self.entries[self.indptr[unit] : self.indptr[unit + 1]]

    def with_key_grouping(self, action: SetKeyGrouping) -> Self:
        """Return the loads with other shares of the tasks of a query, if its keys were sampled."""
        keys = self.sampled.of(action.query) if self.sampled is not None else None
        units = self._units_of_query(action.query)
        if self.sampled is None or keys is None or not units:
            return self
        owners = self.nodes[units].tolist()
        capacities = task_capacities(owners, dict(enumerate(self.capacities.tolist())))
        stream = stream_of(keys, self.sampled, capacities)
        shares = self.shares.copy()
        shares[units] = predict(action.key_grouping, stream).loads
        return replace(self, shares=shares)

    def _units_of_query(self, query: int) -> list[int]:
        """Return the units of the tasks of a split query, in order."""
        known = (self.tasks.get((query, task)) for task in count())
        return [
            unit for unit in takewhile(lambda unit: unit is not None, known) if unit is not None
        ]

    def with_split(self, rows: "list[SplitTask]", read: Mapping[int, Ints]) -> Self:
        """Return the loads with these tasks of split queries; nodes by their positions.

        `read`: the positions of the streams by query.
        """
        count, stop = len(self.ids), self.indptr[len(self.ids)]
        entries = [read[row[0]] for row in rows]
        return replace(
            self,
            queries=np.concatenate([self.ids, np.array([row[0] for row in rows], np.int64)]),
            tasks={(query, task): count + unit for unit, (query, task, *_) in enumerate(rows)},
            indptr=np.concatenate(
                [
                    self.indptr[:count],
                    stop + boundaries(np.array(list(map(len, entries)), np.int64)),
                ]
            ),
            entries=np.concatenate([self.entries[:stop], *entries]),
            shares=np.concatenate(
                [self.shares[:count], np.array([row[3] for row in rows], np.float64)]
            ),
            nodes=np.concatenate(
                [self.nodes[:count], np.array([row[2] for row in rows], np.int64)]
            ),
            state=np.concatenate(
                [self.state[:count], np.array([row[4] for row in rows], np.int64)]
            ),
        )

    def units_of(self, moves: list[TaskMove]) -> tuple[Ints, Ints]:
        """Return the unit of each move, -1 for an unknown one, and the position of its target."""
        queries = np.array([move.query for move in moves], np.int64)
        units, known = arrays.positions_if_known(self.ids, queries)
        for place in np.flatnonzero(~known).tolist():
            units[place] = self.tasks.get((moves[place].query, moves[place].task), -1)
        targets = np.array([move.target for move in moves], np.int64)
        return units, arrays.positions(self.indices, targets)

    @cached_property
    def is_partial(self) -> Flags:
        """Return whether a unit reads a part of its streams' records only, bool[u]."""
        partial: Flags = self.shares < 1
        return partial

    @cached_property
    def complete(self) -> tuple[Ints, Ints]:
        """Return the streams that units read completely, as rows: int64[u + 1], int64[...]."""
        if not self.is_partial.any():
            return self.indptr, self.entries
        lengths = np.diff(self.indptr)
        rows = boundaries(np.where(self.is_partial, 0, lengths))
        return rows, self.entries[np.repeat(~self.is_partial, lengths)]

    @cached_property
    def readers(self) -> Ints:
        """Return the number of units that read a stream completely by node, int64[k, s]."""
        nodes, streams = len(self.indices), len(self.rates)
        indptr, entries = self.complete
        owners = np.repeat(self.nodes, np.diff(indptr))
        flat = np.bincount(owners * streams + entries, minlength=nodes * streams)
        return flat.reshape(nodes, streams)

    @cached_property
    def split_entries(self) -> tuple[Ints, Ints]:
        """Return the entries of units that read a part of their streams: units, positions."""
        units = np.flatnonzero(self.is_partial)
        indptr, places = pick_rows(self.indptr, units)
        return np.repeat(units, np.diff(indptr)), places

    @cached_property
    def parts(self) -> Floats:
        """Return the part of its stream's records that each entry is for, float64[e].

        The union over the queries of a node is divided among their tasks.
        """
        parts = np.ones(len(self.entries))
        units, places = self.split_entries
        spots = self.nodes[units] * len(self.rates) + self.entries[places]
        parts[places] = _divided_union(spots, self.queries[units], self.shares[units])
        return parts

    @cached_property
    def partial(self) -> Floats:
        """Return the part of a stream's records that tasks on a node read, float64[k, s]."""
        nodes, streams = len(self.indices), len(self.rates)
        units, places = self.split_entries
        spots = self.nodes[units] * streams + self.entries[places]
        parts: Floats = np.bincount(spots, self.parts[places], nodes * streams).astype(np.float64)
        return parts.reshape(nodes, streams)

    @cached_property
    def received(self) -> Floats:
        """Return the part of a stream's records that a node receives, float64[k, s]."""
        received: Floats = np.where(self.readers > 0, 1.0, self.partial)
        return received

    @cached_property
    def live(self) -> Any:
        """Return the records/s of all streams that a query reads; float64[t] of rates over time."""
        return self.rates[np.bincount(self.entries, minlength=len(self.rates)) > 0].sum(axis=0)

    @cached_property
    def loads(self) -> Floats:
        """Return the deliveries/s to each node, which processes them, float64[k]."""
        loads: Floats = self.received @ self.rates
        return loads

    @property
    def replication_factor(self) -> float | None:
        """Return the deliveries over the records read, None without records."""
        return float(self.loads.sum() / self.live) if self.live else None

    def removed_from(self, unit: int, node: int) -> float:
        """Return the records/s that a node receives for this query of one task alone."""
        read = self._streams_of(unit)
        is_only = self.readers[node, read] == 1
        return float(self.rates[read] @ (is_only * (1 - self.partial[node, read])))

    def added_to(self, unit: int, node: int) -> float:
        """Return the records/s that a node would receive in addition for a query of one task."""
        read = self._streams_of(unit)
        is_missing = self.readers[node, read] == 0
        return float(self.rates[read] @ (is_missing * (1 - self.partial[node, read])))

    def added_parts(self, streams: Sequence[int]) -> tuple[float, Floats]:
        """Return the records/s of streams, and the part that nodes do not receive, float64[k].

        At least `LEAST_ADDED`; 1 without records.
        """
        read = arrays.positions(self.streams, np.array(streams, np.int64))
        rates = self.rates[read]
        if not rates.any():
            return 0.0, np.ones(len(self.indices))
        parts: Floats = (1 - self.received[:, read]) @ rates / rates.sum()
        return float(rates.sum()), np.maximum(LEAST_ADDED, parts)

    def moved(self, unit: int, node: int) -> Self:
        """Return the loads with a unit on another node, by its position."""
        nodes = self.nodes.copy()
        nodes[unit] = node
        return replace(self, nodes=nodes)

    def without(self, query: int) -> Self:
        """Return the loads without the tasks of a split query, whose streams count as read."""
        return replace(self, shares=np.where(self.queries == query, 0.0, self.shares))

    def hosted(self) -> tuple[Ints, Ints]:
        """Return the number of tasks and the bytes of state of each node, int64[k] each."""
        count = len(self.indices)
        state = np.bincount(self.nodes, self.state, count).astype(np.int64)
        return np.bincount(self.nodes, minlength=count), state


def last_share(rule: DropRule | None) -> float:
    """Return the share that a drop rule drops after its last step, 0 without a rule."""
    return rule.steps[-1][1] if rule is not None else 0.0


def _kept(streams: Ints, snapshot: ClusterSnapshot) -> Floats:
    dropped = {
        rule.stream: last_share(DropRule.from_json(rule.rule))
        for rule in snapshot.drop_rules
        if rule.query == INPUT
    }
    return np.array([1 - dropped.get(stream, 0.0) for stream in streams.tolist()], np.float64)


def _split_tasks(snapshot: ClusterSnapshot) -> Iterable[SplitTask]:
    """Yield the tasks of split queries; nodes by their indices. Unmeasured shares are equal."""
    for query, _, ranges, work, state, _ in snapshot.split:
        total = sum(work)
        for node, first, stop in ranges:
            for task in range(first, stop):
                share = work[task] / total if total else 1 / len(work)
                yield query, task, node, share, state[task]


def _divided_union(spots: Ints, queries: Ints, shares: Floats) -> Floats:
    """Return for each task and spot its part of the union of all tasks there, float64[n].

    Tasks of a query have different records; whether two queries have the same one is independent.
    """
    pairs, groups = np.unique(np.stack([spots, queries]), axis=1, return_inverse=True)
    groups = groups.reshape(-1)
    sums = np.minimum(1.0, np.bincount(groups, shares, pairs.shape[1]))
    of_spot = np.unique(pairs[0], return_inverse=True)[1]
    with np.errstate(divide="ignore"):
        union = -np.expm1(np.bincount(of_spot, np.log1p(-sums)))
    total = np.bincount(of_spot, sums)
    scale = np.divide(union, total, out=np.zeros(len(total)), where=total > 0)
    divided: Floats = shares * scale[of_spot[groups]]
    return divided
