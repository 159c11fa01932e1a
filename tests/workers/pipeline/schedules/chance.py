"""Random plans: what an operator, the planners and an autoscaler might do to a cluster."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetLadder,
    SetSplitCapacity,
)
from controlplane.wire.routing.drop_rules import ALWAYS, INPUT, DropRule
from controlplane.wire.routing.ladder import Cost, KeptPart, Ladder, ResourceKind, Rung
from controlplane.wire.routing.query_actions import (
    AddQuery,
    MoveTasks,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)
from controlplane.wire.routing.route import NO_AGGREGATOR, TaskRange, ranges_of, task_ranges_of
from controlplane.wire.routing.table import RoutingTable
from tests.support.groupings import random_grouping
from tests.support.schemas import declared
from tests.workers.pipeline.schedules.queries import Asked


@dataclass
class Chance:
    """Draws plans for a cluster of `slots` nodes, of which `up` are in use, from one seed."""

    rng: np.random.Generator
    slots: int
    splits: int
    up: list[int]

    def beginning(self, asked: list[Asked], streams: int) -> list[Action]:
        """Return the first table: streams on split nodes, tasks anywhere."""
        assigned = [AssignStream(s, self._below(self.splits)) for s in range(1, streams + 1)]
        columns = declared(range(1, streams + 1))
        limit = SetSplitCapacity(float(self.rng.integers(100, 500)), emulated=True)
        return [*assigned, *columns, *(self._arrival(one) for one in asked), limit]

    def _arrival(self, one: Asked) -> AddQuery:
        owners = sorted(self._node() for _ in range(one.tasks))
        task_ranges: tuple[TaskRange, ...] = task_ranges_of(owners) if one.tasks > 1 else ()
        aggregator = self._node() if one.merged else NO_AGGREGATOR
        return AddQuery(
            one.query,
            0,
            owners[0],
            one.streams,
            one.json,
            task_ranges,
            one.key_grouping,
            aggregator,
        )

    def plan(self, table: RoutingTable) -> list[Action]:
        """Return one or two changes of a kind each."""
        kinds: list[Callable[[RoutingTable], Iterator[Action]]] = [
            self._migrate, self._migrate, self._redirect, self._redirect, self._scale, self._scale,
            self._limit_split_nodes, self._other_key_grouping, self._other_key_grouping,
            self._throttle, self._throttle, self._move_merges, self._other_task_count,
            self._other_ladder,
        ]  # fmt: skip
        chosen = self.rng.choice(len(kinds), size=2, replace=False)
        # Some kinds exclude each other within one version: the first one wins.
        ops: dict[tuple[type, object], Action] = {}
        for kind in chosen.tolist():
            for op in kinds[kind](table):
                ops.setdefault((type(op), op.subjects()), op)
        # Moves are of the tasks that the table has.
        return sorted(ops.values(), key=lambda op: isinstance(op, SetTaskCount))

    def _migrate(self, table: RoutingTable) -> Iterator[Action]:
        """Move a few tasks of a few queries."""
        queries = self.rng.choice(list(table.queries), size=3, replace=False)
        for query in queries.tolist():
            count = len(table.queries[query].owners())
            tasks = self.rng.choice(count, size=min(count, 2), replace=False).tolist()
            yield MoveTasks(query, tuple((self._node(), task, task + 1) for task in tasks))

    def _redirect(self, table: RoutingTable) -> Iterator[Action]:
        """Let other split nodes read some streams, also one that was not there at the start."""
        for stream in self.rng.choice(list(table.splits), size=4, replace=False).tolist():
            yield AssignStream(stream, self._below(self.splits + 1))

    def _limit_split_nodes(self, _: RoutingTable) -> Iterator[Action]:
        """Let streams queue at their split nodes, or not."""
        emulated = self.rng.random() >= 0.3
        yield SetSplitCapacity(float(self.rng.integers(500, 5_000)), emulated)

    def _scale(self, table: RoutingTable) -> Iterator[Action]:
        """Take a node out of use, with all it has, or take one into use."""
        down = [node for node in range(self.slots) if node not in self.up]
        if down and self.rng.random() < 0.5:
            self.up.append(down[0])
            yield from self._migrate(table)
            return
        if len(self.up) < 3:
            return
        gone = self.up.pop(self._below(len(self.up)))
        for query, route in table.queries.items():
            moves = [(self._node(), task, task + 1) for task, node in enumerate(route.owners())
                     if node == gone]  # fmt: skip
            if moves:
                yield MoveTasks(query, tuple(moves))
            if gone in route.aggregators:
                yield SetAggregators(query, (self._node(),))

    def _other_key_grouping(self, _: RoutingTable) -> Iterator[Action]:
        """Let keys find their task in another way: of two queries, by any key grouping."""
        rng = random.Random(self._below(1 << 31))
        for query in self.rng.choice([1, 2, 3, 4], size=2, replace=False).tolist():
            yield SetKeyGrouping(query, random_grouping(rng))

    def _other_task_count(self, table: RoutingTable) -> Iterator[Action]:
        """Give a query with an aggregator other tasks: fewer, or more on any nodes."""
        merged = [query for query, route in table.queries.items()
                  if route.aggregator != NO_AGGREGATOR and not route.is_join]  # fmt: skip
        query = int(self.rng.choice(merged))
        count, wanted = len(table.queries[query].owners()), 2 + self._below(9)
        added = [(task, self._node()) for task in range(count, wanted)]
        yield SetTaskCount(query, wanted, ranges_of(added))

    def _throttle(self, table: RoutingTable) -> Iterator[Action]:
        """Make a node slow, or as fast as it can be."""
        emulated = self.rng.random() >= 0.4
        yield SetCapacity(self._node(), float(self.rng.integers(100, 3_000)), emulated)

    def _move_merges(self, table: RoutingTable) -> Iterator[Action]:
        """Let other nodes merge: one, or several that share the keys."""
        for query, route in table.queries.items():
            if route.aggregators:
                count = 1 + self._below(len(self.up))
                nodes = self.rng.choice(self.up, count, replace=False).tolist()
                yield SetAggregators(query, tuple(nodes))

    def _other_ladder(self, table: RoutingTable) -> Iterator[Action]:
        """Disarm the ladder of drop rules, or arm one."""
        disarm = table.ladder is not None and self.rng.random() < 0.3
        yield SetLadder(None if disarm else self._ladder(len(table.splits)))

    def _ladder(self, streams: int) -> Ladder:
        """Return a ladder for the input edges of four streams, of which some are too costly."""
        chosen = (1 + self.rng.choice(streams, size=4, replace=False)).tolist()
        costs = [Cost(stream, INPUT, ResourceKind.NODE, self._below(self.slots),
                      1 / float(self.rng.uniform(5, 500))) for stream in chosen]  # fmt: skip
        parts, rungs = np.ones(4), []
        for factor in (1.5, 3.0, 9.0):
            parts = parts * self.rng.random(4)
            kept = zip(chosen, parts.tolist(), strict=True)
            rungs.append(
                Rung(factor, tuple(KeptPart(stream, INPUT, part) for stream, part in kept))
            )
        return Ladder(tuple(rungs), tuple(costs), hold_ms=self._below(2_000))

    def drop_rules(self, streams: int) -> list[Action]:
        """Return drops on input edges, of records and of minutes, on a split edge, and a ladder."""
        first, second, third = self.rng.choice(streams, size=3, replace=False).tolist()
        seed = self._below(1000)
        minutes = DropRule(((ALWAYS, float(self.rng.random())),), seed, 60_000, 60_000)
        return [
            SetDropRule(first + 1, INPUT, DropRule.of(float(self.rng.random()), seed)),
            SetDropRule(second + 1, 1, DropRule.of(float(self.rng.random()), seed + 1)),
            SetDropRule(third + 1, INPUT, minutes),
            SetLadder(self._ladder(streams)),
        ]

    def _node(self) -> int:
        return int(self.rng.choice(self.up))

    def _below(self, bound: int) -> int:
        return int(self.rng.integers(bound))
