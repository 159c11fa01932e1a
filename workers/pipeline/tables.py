"""The routing table, compiled for the hot path and kept by each Python worker.

Spark re-uses its Python workers, so a table is read from Redis once per version and process;
the next version costs only its delta.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Final

import numpy as np
import redis

from controlplane.wire.blocks import KINDS
from controlplane.wire.publish import read_table
from controlplane.wire.query import Computation, computation_of, mice
from controlplane.wire.routing import Route, RoutingTable
from workers.pipeline.engine.node import Tasks
from workers.pipeline.engine.subscriptions import Group, Subscription

NO_TASKS: Final = Tasks((), {})
# A mice query has one task, and its node has it.
_WHOLE: Final = np.ones(1, np.bool_)


@dataclass(frozen=True)
class CompiledTable:
    """One routing table, with the look-ups that routing and evaluation need."""

    table: RoutingTable

    @property
    def version(self) -> int:
        """Return the version this was compiled from."""
        return self.table.version

    @cached_property
    def nodes_of_stream(self) -> dict[int, tuple[int, ...]]:
        """Which nodes host at least one query over each stream (those with none are absent)."""
        found: dict[int, set[int]] = {}
        for route in self.table.queries.values():
            for stream in route.streams:
                found.setdefault(stream, set()).add(route.node)
        return {stream: tuple(sorted(nodes)) for stream, nodes in found.items()}

    @cached_property
    def _routes_of_node(self) -> dict[int, list[tuple[int, Route]]]:
        found: dict[int, list[tuple[int, Route]]] = {}
        for query, route in self.table.queries.items():
            found.setdefault(route.node, []).append((query, route))
        return found

    @cached_property
    def _tasks(self) -> dict[int, Tasks]:
        return {node: _tasks(routes) for node, routes in self._routes_of_node.items()}

    def streams_of_split(self, split: int) -> list[int]:
        """Return the streams that a split node reads."""
        return sorted(stream for stream, owner in self.table.splits.items() if owner == split)

    def tasks_of_node(self, node: int) -> Tasks:
        """Return what a node has to compute."""
        return self._tasks.get(node, NO_TASKS)


@cache
def computation_of_mice(value: str, window_s: int) -> Computation:
    """Return what a mice query computes of one column."""
    return computation_of(mice(value, window_s), KINDS)


def _tasks(routes: Iterable[tuple[int, Route]]) -> Tasks:
    groups: dict[Computation, list[Subscription]] = {}
    for query, route in sorted(routes, key=lambda pair: pair[0]):
        computation = computation_of_mice(route.value, route.window_s)
        subscription = Subscription(query, route.run, route.streams, 1, _WHOLE)
        groups.setdefault(computation, []).append(subscription)
    return Tasks.of(Group.of(computation, found) for computation, found in groups.items())


class TableCache:
    """The newest compiled table of one cluster in this process."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self._client = client
        self._cluster = cluster
        self._newest: CompiledTable | None = None
        self._lock = Lock()

    def at(self, version: int) -> CompiledTable:
        """Return the table at `version`, from memory where it is the one held."""
        with self._lock:
            if self._newest is None or self._newest.version != version:
                known = None if self._newest is None else self._newest.table
                self._newest = CompiledTable(
                    read_table(self._client, self._cluster, version, known)
                )
            return self._newest
