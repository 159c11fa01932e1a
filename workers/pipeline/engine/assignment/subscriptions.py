"""Subscriptions: the queries and tasks of a node that use the panes of a computation."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.query import Computation
from controlplane.wire.routing.drop_rules import DropRule
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.engine.hashing import hash_rows

# What a stream's records or windows are dropped by.
DropRules = tuple[tuple[int, DropRule], ...]


@dataclass(frozen=True)
class Intake:
    """The input of a group of queries: its drop rules, and the column with the task.

    `column`: the column with the task of each record; empty: the key decides. `drop_rules`: those
    of the edges from streams to the group; `windows`: those that drop whole windows, on these
    edges or on the streams' input edges. `ladder`: pairs of stream and class of the edges that the
    ladder drops on (`CompiledLadder.query_edges`); `ladder_rules`: the ladder's drop rules of these
    edges in the present batch.
    """

    column: str = ""
    drop_rules: DropRules = ()
    windows: DropRules = ()
    ladder: tuple[tuple[int, int], ...] = ()
    ladder_rules: DropRules = ()


DIRECT: Final = Intake()
# In `Subscription.task_of`: the records of this task are processed elsewhere.
NOT_OWNED: Final = -1
# In `Intake.ladder`: the class of an input edge that drops windows of the query's length.
INPUT_WINDOWS: Final = -1


class TaskOwnership(NamedTuple):
    """The tasks of a query that a node owned when records joined its backlog.

    `column`: the column with the task of each record; empty: the key decides. `routed_count`: how
    many tasks the query had when its records were routed, 0: as many as now. `routed`: the task
    that the records were routed to, by place in `tasks`; empty: the same. They differ where a task
    was removed, and another one has its backlog.
    """

    incarnation: int
    tasks: Sequence[int]
    column: str = ""
    routed_count: int = 0
    routed: Sequence[int] = ()

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Return (routed task, task that processes its records)."""
        return list(zip(self.routed or self.tasks, self.tasks, strict=True))

    def routed_to(self, task: int) -> tuple[int, ...]:
        """Return to which tasks the records were routed that a task processes."""
        return tuple(routed for routed, owner in self.pairs if owner == task)

    def joined(self, other: "TaskOwnership") -> "TaskOwnership":
        """Return the ownership of these tasks and other ones of the query."""
        routed, tasks = zip(*sorted([*self.pairs, *other.pairs]), strict=True)
        return self._replace(tasks=list(tasks), routed=() if routed == tasks else list(routed))

    def without(self, task: int) -> "TaskOwnership | None":
        """Return the ownership without a task, None if nothing is left."""
        left = [(routed, owner) for routed, owner in self.pairs if owner != task]
        if not left:
            return None
        routed, tasks = zip(*left, strict=True)
        return self._replace(tasks=list(tasks), routed=() if routed == tasks else list(routed))


@dataclass(frozen=True)
class Subscription:
    """One query on one node: its incarnation, its streams, and which of its tasks the node has.

    `tasks`: how many the query has in all; `owned`: bool[tasks]. `backlog`: by the task that
    records of a backlog were routed to, the task that processes them, NOT_OWNED for none; None for
    records of this batch.
    """

    query: int
    incarnation: int
    streams: tuple[int, ...]
    tasks: int
    owned: NDArray[np.bool_]
    backlog: Int64s | None = None

    @property
    def routed_tasks(self) -> int:
        """Return how many tasks the query had when the records were routed."""
        return self.tasks if self.backlog is None else len(self.backlog)

    @property
    def task_of(self) -> Int64s:
        """Return by the task that a record was routed to the one that processes it here."""
        if self.backlog is not None:
            return self.backlog
        return np.where(self.owned, np.arange(self.tasks), NOT_OWNED)

    def within(self, ownership: TaskOwnership) -> "Subscription | None":
        """Return the subscription limited to owned tasks of its incarnation, or None."""
        backlog = np.full(ownership.routed_count or self.tasks, NOT_OWNED)
        for routed, task in ownership.pairs:
            if task < self.tasks and self.owned[task] and routed < len(backlog):
                backlog[routed] = task
        owned = np.zeros(self.tasks, np.bool_)
        owned[backlog[backlog != NOT_OWNED]] = True
        return (
            replace(self, owned=owned, backlog=backlog)
            if ownership.incarnation == self.incarnation and owned.any()
            else None
        )


@dataclass(frozen=True)
class NodeGroup:
    """All queries of a node with the same computation: pairs of stream and query, by stream."""

    computation: Computation
    subscriptions: tuple[Subscription, ...]
    stream: Int64s
    member: Int64s
    streams: frozenset[int]
    intake: Intake = DIRECT

    @classmethod
    def of(
        cls,
        computation: Computation,
        subscriptions: Sequence[Subscription],
        intake: Intake = DIRECT,
    ) -> "NodeGroup":
        """Build the group; `member` is the place of each pair's query."""
        pairs = sorted(
            (stream, index)
            for index, subscription in enumerate(subscriptions)
            for stream in subscription.streams
        )
        columns = np.array(pairs, np.int64).reshape(-1, 2)
        stream, member = columns[:, 0].copy(), columns[:, 1].copy()
        streams = frozenset(stream.tolist())
        return cls(computation, tuple(subscriptions), stream, member, streams, intake)

    def of_queries(self, queries: Collection[int]) -> "NodeGroup":
        """Return the group of some of its queries."""
        if len(queries) == len(self.subscriptions):
            return self
        kept = [
            subscription for subscription in self.subscriptions if subscription.query in queries
        ]
        return NodeGroup.of(self.computation, kept, self.intake)

    def owned(self, rows: Any, key_names: Sequence[str]) -> Any:
        """Return rows of panes as rows of tasks; a row may be for several tasks.

        `rows` has the columns `stream`, the keys and more, and `task` if the intake has a column.
        """
        stream = np.asarray(rows["stream"])
        low = np.searchsorted(self.stream, stream, "left")
        count = np.searchsorted(self.stream, stream, "right") - low
        row = np.repeat(np.arange(len(stream)), count)
        # Places low..low+count-1 of every row, laid end to end.
        within = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        member = self.member[np.repeat(low, count) + within]
        task, taken = self._tasks(rows, key_names, row, member)
        if not taken.all():
            row, member, task = row[taken], member[taken], task[taken]
        plain = rows.drop_columns(["task"]) if self.intake.column else rows
        spread = plain.take(pa.array(row))
        query = np.array([item.query for item in self.subscriptions], np.int64)[member]
        incarnation = np.array(
            [subscription.incarnation for subscription in self.subscriptions], np.int64
        )[member]
        for index, (name, values) in enumerate(
            (("query", query), ("run", incarnation), ("task", task))
        ):
            spread = spread.add_column(index, name, pa.array(values))
        return spread

    def _tasks(
        self, rows: Any, key_names: Sequence[str], row: Int64s, member: Int64s
    ) -> tuple[Int64s, NDArray[np.bool_]]:
        """Return the task of each row and whether this node has it."""
        lengths = np.array([item.routed_tasks for item in self.subscriptions], np.int64)
        counts = lengths[member]
        if (counts == 1).all() and not self.intake.column:
            return np.zeros(len(row), np.int64), np.ones(len(row), np.bool_)
        if self.intake.column:
            routed = np.asarray(rows["task"])[row]
        else:
            hashes = hash_rows([rows[name] for name in key_names], len(rows))
            routed = (hashes[row] % counts.astype(np.uint64)).astype(np.int64)
        offsets = np.cumsum(lengths) - lengths
        task_of = np.concatenate([item.task_of for item in self.subscriptions])
        task = task_of[offsets[member] + routed]
        return task, task != NOT_OWNED
