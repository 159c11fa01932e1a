"""The route of a query: its node, and the ranges of its tasks."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from controlplane.wire.errors import InconsistentDelta

# Consecutive tasks of one node: (node, first, stop).
TaskRange = tuple[int, int, int]
# The aggregator node of a query without one: readers merge its parts.
NO_AGGREGATOR: Final = -1


@dataclass(frozen=True, slots=True)
class Route:
    """The node, tasks and computation of one query.

    `incarnation`: a move without state increments it. `text`: the query as JSON
    (`query.QueryText`). `task_ranges`: (node, first, stop) in order; empty for one task on `node`.
    `key_grouping`: as JSON text; empty for plain key grouping. `aggregator`: the aggregator node or
    the first of several, `more_aggregators`: the others. Keys are spread over them by their hash.
    """

    incarnation: int
    node: int
    streams: tuple[int, ...]
    text: str
    task_ranges: tuple[TaskRange, ...] = ()
    key_grouping: str = ""
    aggregator: int = NO_AGGREGATOR
    more_aggregators: tuple[int, ...] = ()

    @property
    def aggregators(self) -> tuple[int, ...]:
        """Return all aggregator nodes, by their place."""
        if self.aggregator == NO_AGGREGATOR:
            return ()
        return (self.aggregator, *self.more_aggregators)

    @property
    def is_join(self) -> bool:
        """Return whether the query pairs records, which must meet in one task."""
        text = json.loads(self.text) if self.text else {}
        return bool(text.get("right") or text.get("on"))

    def owners(self) -> tuple[int, ...]:
        """Return the node of each task."""
        if not self.task_ranges:
            return (self.node,)
        return tuple(node for node, first, stop in self.task_ranges for _ in range(first, stop))


def check_task_ranges(query: int, task_ranges: Sequence[TaskRange]) -> None:
    """Raise unless the ranges hold tasks 0, 1, … without gap or overlap."""
    offset = 0
    for _, first, stop in task_ranges:
        if first != offset or stop <= first:
            raise InconsistentDelta(
                f"query {query}: tasks [{first}, {stop}) cannot follow {offset}"
            )
        offset = stop


def ranges_of(owners: Sequence[tuple[int, int]]) -> tuple[TaskRange, ...]:
    """Return (node, first, stop) of tasks with their nodes, sorted by task, neighbours as one."""
    ranges: list[TaskRange] = []
    for task, node in owners:
        if ranges and ranges[-1][0] == node and ranges[-1][2] == task:
            ranges[-1] = (node, ranges[-1][1], task + 1)
        else:
            ranges.append((node, task, task + 1))
    return tuple(ranges)


def task_ranges_of(owners: Sequence[int]) -> tuple[TaskRange, ...]:
    """Return (node, first, stop) of tasks 0, 1, … by their nodes, neighbours on one node as one."""
    return ranges_of(list(enumerate(owners)))


def task_ranges_from(begins: Sequence[tuple[int, int]], count: int) -> tuple[TaskRange, ...]:
    """Return the ranges of `count` tasks from their beginnings, by (first task, node).

    Each ends where the next one begins.
    """
    ends = [first for first, _ in begins[1:]] + [count]
    return tuple((node, first, stop) for (first, node), stop in zip(begins, ends, strict=True))


def with_moves(query: int, route: Route, moves: Sequence[TaskRange]) -> Route:
    """Return the route with tasks on other nodes. Raises `InconsistentDelta`."""
    owners = list(route.owners())
    for node, first, stop in moves:
        if not 0 <= first < stop <= len(owners):
            why = f"query {query} has {len(owners)} tasks, not [{first}, {stop})"
            raise InconsistentDelta(why)
        owners[first:stop] = [node] * (stop - first)
    return with_owners(route, owners)


def with_aggregators(route: Route, nodes: Sequence[int]) -> Route:
    """Return the route with these aggregator nodes, at least one."""
    return replace(route, aggregator=nodes[0], more_aggregators=tuple(nodes[1:]))


def with_owners(route: Route, owners: Sequence[int]) -> Route:
    """Return the route with tasks on these nodes."""
    task_ranges = task_ranges_of(owners) if len(owners) > 1 else ()
    return replace(route, node=owners[0], task_ranges=task_ranges)
