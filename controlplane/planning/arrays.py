"""The queries of a snapshot as flat arrays: positions of nodes and streams."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from algorithms.vocabulary import Floats, Ints
from controlplane.plans.snapshot import ClusterSnapshot


@dataclass(frozen=True)
class QueryArrays:
    """The queries of one task; n queries, e entries (a stream that a query reads).

    `ids`, `nodes` int64[n]: the query's id, and the position of its node in the snapshot. Streams
    by rows `indptr` int64[n + 1], `streams` int64[e]: positions in the snapshot.
    """

    ids: Ints
    nodes: Ints
    indptr: Ints
    streams: Ints

    @classmethod
    def of(cls, snapshot: ClusterSnapshot) -> "QueryArrays":
        """Read a snapshot. Raises `KeyError` on an unknown node or stream."""
        queries: Sequence[Any] = snapshot.queries
        read = list(map(itemgetter(3), queries))
        indptr = np.zeros(len(queries) + 1, np.int64)
        np.cumsum(_integers(map(len, read), len(read)), out=indptr[1:])
        entries = _integers(chain.from_iterable(read), int(indptr[-1]))
        nodes = _integers(map(itemgetter(2), queries), len(queries))
        return cls(
            _integers(map(itemgetter(0), queries), len(queries)),
            node_positions(snapshot, nodes),
            indptr,
            positions(np.array([stream.id for stream in snapshot.streams], np.int64), entries),
        )


def rates_of(snapshot: ClusterSnapshot) -> Floats:
    """Return the records/s of each stream."""
    return np.array([rate for _, rate in snapshot.streams], np.float64)


def capacities_of(snapshot: ClusterSnapshot) -> Floats:
    """Return the records/s that each node can process."""
    return np.array([node.capacity for node in snapshot.nodes], np.float64)


def node_positions(snapshot: ClusterSnapshot, indices: Ints) -> Ints:
    """Return the positions in the snapshot of nodes by their index. Raises `KeyError`."""
    return positions(np.array([node.index for node in snapshot.nodes], np.int64), indices)


def positions(known: Ints, wanted: Ints) -> Ints:
    """Return the position of each wanted value in `known`, which has distinct values.

    Raises `KeyError` with the first unknown value.
    """
    places, there = positions_if_known(known, wanted)
    if not there.all():
        raise KeyError(int(wanted[~there][0]))
    return places


def positions_if_known(known: Ints, wanted: Ints) -> tuple[Ints, Any]:
    """Return the position of each wanted value in `known`, and whether it exists (bool)."""
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    order = np.argsort(known, kind="stable")
    ascending = known[order]
    index = np.minimum(np.searchsorted(ascending, wanted), len(known) - 1)
    return order[index], ascending[index] == wanted


def _integers(values: Iterable[int], count: int) -> Ints:
    return np.fromiter(values, np.int64, count)
