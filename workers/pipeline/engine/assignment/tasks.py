"""The work of a node: its queries, and the tasks of each that the node owns."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from controlplane.wire.aggregates.layout import layout_of
from controlplane.wire.language.tree import NUMBERS, Kind
from controlplane.wire.query import Computation
from workers.pipeline.engine.assignment.subscriptions import (
    DropRules,
    NodeGroup,
    Subscription,
    TaskOwnership,
)
from workers.pipeline.engine.evaluation.user_aggregates import user_aggregate
from workers.pipeline.engine.storage.window_state import WindowClosing

Task = tuple[int, int]


@dataclass(frozen=True)
class Member:
    """A query on a node: its subscription, windows, and user aggregates by place."""

    subscription: Subscription
    closing: WindowClosing
    user_aggregates: Mapping[int, str]
    windows: DropRules = ()
    computation: Computation | None = None

    @property
    def joins(self) -> bool:
        """Return whether the query is a join."""
        return self.computation is not None and self.computation.join is not None


@dataclass(frozen=True)
class Tasks:
    """The work of a node: groups of queries, and each query."""

    groups: tuple[NodeGroup, ...]
    members: Mapping[int, Member]

    @classmethod
    def of(cls, groups: Iterable[NodeGroup]) -> "Tasks":
        """Combine the groups of a node."""
        kept = tuple(groups)
        return cls(kept, {subscription.query: _member(group, subscription) for group in kept
                          for subscription in group.subscriptions})  # fmt: skip

    @property
    def closing(self) -> dict[int, WindowClosing]:
        """Return by query when its windows close."""
        return {query: member.closing for query, member in self.members.items()}

    @property
    def joins(self) -> dict[int, tuple[int, ...]]:
        """Return the streams of each join."""
        return {
            query: member.subscription.streams
            for query, member in self.members.items()
            if member.joins
        }

    @cached_property
    def counted(self) -> list[list[Any]]:
        """Return the kinds of what `top_k` counts by query and place, as JSON values."""
        return counted_in(self.members)

    @property
    def split(self) -> list[int]:
        """Return the queries with several tasks, which other nodes may own."""
        return [query for query, member in self.members.items() if member.subscription.tasks > 1]

    def within(self, allowed: Mapping[int, TaskOwnership]) -> "Tasks":
        """Return the allowed tasks, with the task column that their records carry."""
        groups = []
        for group in self.groups:
            kept: dict[str, list[Subscription]] = {}
            for subscription in group.subscriptions:
                ownership = allowed.get(subscription.query)
                if ownership is not None and (left := subscription.within(ownership)) is not None:
                    kept.setdefault(ownership.column, []).append(left)
            groups += [
                NodeGroup.of(group.computation, those, replace(group.intake, column=column))
                for column, those in kept.items()
            ]
        return Tasks.of(groups)

    def without(self, queries: Collection[int]) -> "Tasks":
        """Return these tasks but those of some queries."""
        if self.members.keys().isdisjoint(queries):
            return self
        groups = []
        for group in self.groups:
            kept = [
                subscription
                for subscription in group.subscriptions
                if subscription.query not in queries
            ]
            if kept:
                groups.append(NodeGroup.of(group.computation, kept, group.intake))
        return Tasks.of(groups)

    def owned(self) -> dict[int, TaskOwnership]:
        """Return by query the tasks that the node owns."""
        return {
            subscription.query: TaskOwnership(
                subscription.incarnation,
                np.flatnonzero(subscription.owned).tolist(),
                group.intake.column,
                subscription.tasks,
            )
            for group in self.groups
            for subscription in group.subscriptions
        }

    def work(self, query: int, index: int) -> Any:
        """Return the user's aggregate of a query."""
        return user_aggregate(self.members[query].user_aggregates[index])


def counted_in(members: Mapping[int, Member]) -> list[list[Any]]:
    """Return the kinds of what `top_k` over numbers counts by query and place, as JSON values."""
    return [
        [query, list(counted.items())]
        for query, member in members.items()
        if member.computation is not None and (counted := counted_by(member.computation))
    ]


@lru_cache(maxsize=1024)
def counted_by(computation: Computation) -> dict[int, Kind]:
    """Return by place the kinds of numbers that a computation's `top_k` counts."""
    return {
        sketch.index: sketch.aggregate.argument.kind
        for sketch in layout_of(computation).sketches
        if sketch.aggregate.kept.sketch == "top_k"
        and sketch.aggregate.argument is not None
        and sketch.aggregate.argument.kind in NUMBERS
    }


def _member(group: NodeGroup, subscription: Subscription) -> Member:
    computation = group.computation
    user_aggregates = {
        sketch.index: sketch.aggregate.kept.sketch for sketch in layout_of(computation).sketches
    }
    closing = WindowClosing(computation.window, computation.lateness_ms)
    return Member(subscription, closing, user_aggregates, group.intake.windows, computation)
