"""The routing table, compiled for the hot path and kept by each Python worker.

Spark re-uses its Python workers, so a table is read from Redis once per version and process;
the next version costs only its delta.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from threading import Lock
from typing import Final, NamedTuple

import numpy as np
import redis

from controlplane.wire.blocks import KINDS
from controlplane.wire.language.tree import Expression
from controlplane.wire.publish import read_table
from controlplane.wire.query import Computation, QueryText, computation_of, mice
from controlplane.wire.routing import Route, RoutingTable, Transfer, in_transition, transfers
from workers.pipeline.engine.node import Tasks
from workers.pipeline.engine.subscriptions import Group, Subscription

NO_TASKS: Final = Tasks((), {})
# A mice query has one task, and its node has it.
_WHOLE: Final = np.ones(1, np.bool_)
# The present table and the one before, and the one that leads from it; and one to spare.
_KEPT_TABLES: Final = 4


class Keyed(NamedTuple):
    """Readers of a part each: a record goes to the node of its key's task."""

    key: tuple[Expression, ...]
    owners: tuple[int, ...]


class Readers(NamedTuple):
    """Who reads a stream: nodes that need every record, and those that need some."""

    whole: tuple[int, ...]
    keyed: tuple[Keyed, ...]


@dataclass(frozen=True)
class CompiledTable:
    """One routing table, with the look-ups that routing and evaluation need."""

    table: RoutingTable

    @property
    def version(self) -> int:
        """Return the version this was compiled from."""
        return self.table.version

    @cached_property
    def readers_of_stream(self) -> dict[int, Readers]:
        """Return which nodes need which records of each stream (streams without are absent)."""
        whole: dict[int, set[int]] = {}
        keyed: dict[int, set[Keyed]] = {}
        for route in self.table.queries.values():
            owners = route.owners()
            for stream in route.streams:
                if len(set(owners)) == 1:
                    whole.setdefault(stream, set()).add(owners[0])
                else:
                    key = tuple(one for _, one in computation_of_route(route).key)
                    keyed.setdefault(stream, set()).add(Keyed(key, owners))
        return {
            stream: Readers(tuple(sorted(whole.get(stream, ()))), tuple(keyed.get(stream, ())))
            for stream in {*whole, *keyed}
        }

    @cached_property
    def _routes_of_node(self) -> dict[int, list[tuple[int, Route]]]:
        found: dict[int, list[tuple[int, Route]]] = {}
        for query, route in self.table.queries.items():
            for node in dict.fromkeys(route.owners()):
                found.setdefault(node, []).append((query, route))
        return found

    @cached_property
    def _tasks(self) -> dict[int, Tasks]:
        return {node: _tasks(node, routes) for node, routes in self._routes_of_node.items()}

    def streams_of_split(self, split: int) -> list[int]:
        """Return the streams that a split node reads."""
        return sorted(stream for stream, owner in self.table.splits.items() if owner == split)

    def tasks_of_node(self, node: int) -> Tasks:
        """Return what a node has to compute."""
        return self._tasks.get(node, NO_TASKS)


def computation_of_route(route: Route) -> Computation:
    """Return what a route's query computes."""
    return _computation(route.text, route.value, route.window_s)


@cache
def _computation(text: str, value: str, window_s: int) -> Computation:
    query = QueryText.from_json(json.loads(text)) if text else mice(value, window_s)
    return computation_of(query, KINDS)


def _tasks(node: int, routes: Iterable[tuple[int, Route]]) -> Tasks:
    groups: dict[Computation, list[Subscription]] = {}
    for query, route in sorted(routes, key=lambda pair: pair[0]):
        owners = route.owners()
        mine = _WHOLE if len(owners) == 1 else np.array(owners) == node
        subscription = Subscription(query, route.run, route.streams, len(owners), mine)
        groups.setdefault(computation_of_route(route), []).append(subscription)
    return Tasks.of(Group.of(computation, found) for computation, found in groups.items())


class TableCache:
    """The compiled tables of one cluster that this process used last."""

    def __init__(self, client: "redis.Redis", cluster: str) -> None:
        self._client = client
        self._cluster = cluster
        # By the version before, in a batch that leads from it, and the version.
        self._known: dict[tuple[int | None, int], CompiledTable] = {}
        self._lock = Lock()

    def at(self, version: int) -> CompiledTable:
        """Return the table at `version`, built from the newest one held before it."""
        with self._lock:
            return self._at(version)

    def of_batch(self, leaving: int | None, version: int) -> CompiledTable:
        """Return the table of a batch, in which tasks hand their state on or do not."""
        return self.at(version) if leaving is None else self.leading(leaving, version)

    def leading(self, before: int, version: int) -> CompiledTable:
        """Return the table of the batch that leads from one version to another."""
        with self._lock:
            if (before, version) not in self._known:
                old, new = self._at(before).table, self._at(version).table
                self._keep((before, version), CompiledTable(in_transition(old, new)))
            return self._known[before, version]

    def transfers(self, before: int, version: int) -> list[Transfer]:
        """Return which tasks hand their state on between two versions."""
        with self._lock:
            return list(transfers(self._at(before).table, self._at(version).table))

    def _at(self, version: int) -> CompiledTable:
        if (None, version) not in self._known:
            older = [known for before, known in self._known if before is None and known < version]
            base = self._known[None, max(older)].table if older else None
            table = read_table(self._client, self._cluster, version, base)
            self._keep((None, version), CompiledTable(table))
        return self._known[None, version]

    def _keep(self, key: tuple[int | None, int], table: CompiledTable) -> None:
        self._known[key] = table
        while len(self._known) > _KEPT_TABLES:
            del self._known[next(iter(self._known))]
