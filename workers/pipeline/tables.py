"""The routing table, compiled for the hot path and kept by each Python worker.

Spark re-uses its Python workers, so a table is read from Redis once per version and process;
the next version costs only its delta.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
import redis
from numpy.typing import NDArray

from controlplane.wire.publish import read_table
from controlplane.wire.routing import Route, RoutingTable

Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Subscriptions:
    """The (query, stream) pairs of one node that share window length and value column.

    Arrays of equal length, sorted by stream.
    """

    window_ms: int
    value: str
    query: Int64s
    run: Int64s
    stream: Int64s


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
    def _subscriptions(self) -> dict[int, tuple[Subscriptions, ...]]:
        return {node: _subscriptions(routes) for node, routes in self._routes_of_node.items()}

    def streams_of_split(self, split: int) -> list[int]:
        """Return the streams that a split node reads."""
        return sorted(stream for stream, owner in self.table.splits.items() if owner == split)

    def subscriptions_of_node(self, node: int) -> tuple[Subscriptions, ...]:
        """Return what a node has to evaluate, grouped by window length and value column."""
        return self._subscriptions.get(node, ())

    def queries_of_node(self, node: int) -> tuple[Int64s, Int64s]:
        """Return the ids and runs of a node's queries, sorted by id."""
        rows = sorted((query, route.run) for query, route in self._routes_of_node.get(node, []))
        pairs = np.array(rows, np.int64).reshape(-1, 2)
        return pairs[:, 0].copy(), pairs[:, 1].copy()


def _subscriptions(routes: Iterable[tuple[int, Route]]) -> tuple[Subscriptions, ...]:
    groups: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
    for query, route in routes:
        rows = groups.setdefault((route.window_s * 1000, route.value), [])
        rows.extend((stream, query, route.run) for stream in route.streams)
    return tuple(
        _group(window_ms, value, rows) for (window_ms, value), rows in sorted(groups.items())
    )


def _group(window_ms: int, value: str, rows: list[tuple[int, int, int]]) -> Subscriptions:
    pairs = np.array(sorted(rows), np.int64)
    return Subscriptions(
        window_ms, value, pairs[:, 1].copy(), pairs[:, 2].copy(), pairs[:, 0].copy()
    )


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
