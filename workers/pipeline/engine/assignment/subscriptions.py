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
    edges or on the streams' input edges.
    """

    column: str = ""
    drop_rules: DropRules = ()
    windows: DropRules = ()


DIRECT: Final = Intake()


class TaskOwnership(NamedTuple):
    """The tasks of a query that a node owned when records joined its backlog.

    `column`: the column with the task of each record; empty: the key decides.
    """

    incarnation: int
    tasks: Sequence[int]
    column: str = ""


@dataclass(frozen=True)
class Subscription:
    """One query on one node: its incarnation, its streams, and which of its tasks the node has.

    `tasks`: how many the query has in all; `mine`: bool[tasks].
    """

    query: int
    incarnation: int
    streams: tuple[int, ...]
    tasks: int
    owned: NDArray[np.bool_]

    def within(self, ownership: TaskOwnership) -> "Subscription | None":
        """Return the subscription limited to owned tasks of its incarnation, or None."""
        allowed = np.zeros(self.tasks, np.bool_)
        allowed[[task for task in ownership.tasks if task < self.tasks]] = True
        owned = self.owned & allowed
        return (
            replace(self, owned=owned)
            if ownership.incarnation == self.incarnation and owned.any()
            else None
        )


@dataclass(frozen=True)
class Group:
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
    ) -> "Group":
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

    def of_queries(self, queries: Collection[int]) -> "Group":
        """Return the group of some of its queries."""
        if len(queries) == len(self.subscriptions):
            return self
        kept = [
            subscription for subscription in self.subscriptions if subscription.query in queries
        ]
        return Group.of(self.computation, kept, self.intake)

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
        counts = np.array([item.tasks for item in self.subscriptions], np.int64)[member]
        if (counts == 1).all() and not self.intake.column:
            return np.zeros(len(row), np.int64), np.ones(len(row), np.bool_)
        if self.intake.column:
            task = np.asarray(rows["task"])[row]
        else:
            hashes = hash_rows([rows[name] for name in key_names], len(rows))
            task = (hashes[row] % counts.astype(np.uint64)).astype(np.int64)
        offsets = np.cumsum([0, *(value.tasks for value in self.subscriptions)])
        owned = np.concatenate([subscription.owned for subscription in self.subscriptions])
        return task, owned[offsets[member] + task]
