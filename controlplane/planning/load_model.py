"""Loads of the nodes of a cluster, in a snapshot and after actions.

Measures, the order of moves, budgets and the effects of single actions use this model only.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, takewhile
from typing import Self

import numpy as np

from algorithms.ordering import MoveSet, WorkUnit, WorkUnits
from algorithms.vocabulary import Floats, Ints
from controlplane.planning import arrays
from controlplane.planning.arrays import QueryArrays
from controlplane.planning.measured.key_loads import predict, stream_of, task_capacities
from controlplane.planning.measured.sampled_keys import PartitioningInput
from controlplane.plans.plan import PlannedAction, TaskMove
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.cluster_actions import SetCapacity, SetDropRule
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.query_actions import SetKeyGrouping, SetTaskCount

Task = tuple[int, int]
# Query, task, node, records/s, bytes of state.
SplitTask = tuple[int, int, int, float, int]


@dataclass(frozen=True)
class LoadModel:
    """The loads of k nodes by s streams and u units (queries or tasks that move as a whole).

    `indices` int64[k], `capacities` float64[k]: index and records/s of each node. `streams`
    int64[s]: ids; `offered`, `rates` float64[s]: records/s before and after the drop rules of the
    input edges. The first units are the queries of one task, whose ids are `ids` int64; the others
    are the tasks of split queries, `tasks` by (query, task). The streams that units read are the
    rows `indptr` int64[u + 1] of `entries` int64[e], positions of streams. `own` float64[u]:
    records/s that a unit shares with no other; `nodes` int64[u]: the position of its node; `state`
    int64[u]: its bytes. `sampled`: the sampled keys of split queries, from which the effect of
    other key groupings is predicted.

    Drop rules between a stream and a query have no effect, as a node receives a stream once for all
    its queries.
    """

    indices: Ints
    capacities: Floats
    streams: Ints
    offered: Floats
    rates: Floats
    ids: Ints
    tasks: Mapping[Task, int]
    indptr: Ints
    entries: Ints
    own: Floats
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
            np.zeros(count),
            queries.nodes,
            np.fromiter(state, np.int64, count),
            snapshot.input(PartitioningInput),
        )
        places = zip(rows, nodes.tolist(), strict=True)
        return whole.with_split([(q, t, node, own, size) for (q, t, _, own, size), node in places])

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
        rows = [(query, task, int(self.nodes[unit]), float(self.own[unit]), int(self.state[unit]))
                for (query, task), unit in self.tasks.items()]  # fmt: skip
        others = [row for row in rows if row[0] != action.query]
        present = sorted(row for row in rows if row[0] == action.query)
        if not present:
            return self
        own = sum(row[3] for row in present) / action.tasks
        kept = [(node, size) for _, _, node, _, size in present[: action.tasks]]
        added = [node for node, first, stop in action.added for _ in range(first, stop)]
        places = arrays.positions(self.indices, np.array(added, np.int64)).tolist()
        tasks = [*kept, *((place, 0) for place in places)]
        rows = [*others, *((action.query, task, node, own, size)
                           for task, (node, size) in enumerate(tasks))]  # fmt: skip
        return self.with_split(rows)

    def with_key_grouping(self, action: SetKeyGrouping) -> Self:
        """Return the loads with other shares of the tasks of a query, if its keys were sampled."""
        keys = self.sampled.of(action.query) if self.sampled is not None else None
        units = self._units_of_query(action.query)
        if self.sampled is None or keys is None or not units:
            return self
        owners = self.nodes[units].tolist()
        capacities = task_capacities(owners, dict(enumerate(self.capacities.tolist())))
        stream = stream_of(keys, self.sampled, capacities)
        shares = predict(action.key_grouping, stream).loads
        own = self.own.copy()
        own[units] = own[units].sum() * shares
        return replace(self, own=own)

    def _units_of_query(self, query: int) -> list[int]:
        """Return the units of the tasks of a split query, in order."""
        known = (self.tasks.get((query, task)) for task in count())
        return [
            unit for unit in takewhile(lambda unit: unit is not None, known) if unit is not None
        ]

    def with_split(self, rows: "list[SplitTask]") -> Self:
        """Return the loads with these tasks of split queries; nodes by their positions."""
        count = len(self.ids)
        return replace(
            self,
            tasks={(query, task): count + unit for unit, (query, task, *_) in enumerate(rows)},
            indptr=np.concatenate(
                [self.indptr[: count + 1], np.full(len(rows), self.indptr[count])]
            ),
            own=np.concatenate([self.own[:count], np.array([row[3] for row in rows], np.float64)]),
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
    def readers(self) -> Ints:
        """Return the number of units that read a stream by node, int64[k, s]."""
        nodes, streams = len(self.indices), len(self.rates)
        owners = np.repeat(self.nodes, np.diff(self.indptr))
        flat = np.bincount(owners * streams + self.entries, minlength=nodes * streams)
        return flat.reshape(nodes, streams)

    @cached_property
    def received(self) -> Floats:
        """Return the records/s that each node receives, each stream once, float64[k]."""
        received: Floats = (self.readers > 0) @ self.rates
        return received

    @cached_property
    def live(self) -> float:
        """Return the records/s of all streams that queries of one task read."""
        return float(self.rates[self.readers.any(axis=0)].sum())

    @cached_property
    def loads(self) -> Floats:
        """Return the records/s that each node processes, float64[k]."""
        own = np.bincount(self.nodes, self.own, len(self.indices)).astype(np.float64)
        return self.received + own

    def hosted(self) -> tuple[Ints, Ints]:
        """Return the number of tasks and the bytes of state of each node, int64[k] each."""
        count = len(self.indices)
        state = np.bincount(self.nodes, self.state, count).astype(np.int64)
        return np.bincount(self.nodes, minlength=count), state

    def move_set(self, moves: list[TaskMove]) -> MoveSet:
        """Return moves for ordering. Raises `KeyError` on an unknown task or node."""
        units, targets = self.units_of(moves)
        if (units < 0).any():
            unknown = moves[int(np.flatnonzero(units < 0)[0])]
            raise KeyError((unknown.query, unknown.task))
        table = WorkUnits(self.indptr, self.entries, self.own, self.nodes)
        return MoveSet.from_units(self.rates, self.capacities, table, units, targets)

    def unit(self, number: int) -> WorkUnit:
        """Return one unit with its positions of streams and its own load."""
        first, stop = self.indptr[number], self.indptr[number + 1]
        return WorkUnit(tuple(self.entries[first:stop].tolist()), float(self.own[number]))


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
    """Yield the tasks of split queries; nodes by their indices."""
    for query, _, ranges, work, state in snapshot.split:
        for node, first, stop in ranges:
            for task in range(first, stop):
                yield query, task, node, work[task], state[task]
