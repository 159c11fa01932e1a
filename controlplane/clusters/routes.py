"""Which nodes read which streams, and which nodes send partial results, by the routed tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from algorithms.vocabulary import Flags, Floats, Ints
from controlplane.models import Query, QueryStream, Task
from controlplane.models.query import LIVE_STATES

# Routing versions of clusters that are remembered by a process.
_REMEMBERED: Final = 16


@dataclass(frozen=True, eq=False)
class Routes:
    """The part of a stream's records that a node reads, by (stream id, node index), from 0 to 1.

    `partials`: the number of tasks whose partial results go from a node to an aggregator node, by
    (node index, aggregator's node index).
    """

    read: Mapping[tuple[int, int], float]
    partials: Mapping[tuple[int, int], int]

    def parts(self, streams: Sequence[int], nodes: Sequence[int]) -> Floats:
        """Return the parts by the ids of streams and the indices of nodes, float64[s, n]."""
        rows, has_row = _places(self._pairs[:, 0], streams)
        columns, has_column = _places(self._pairs[:, 1], nodes)
        known = has_row & has_column
        result = np.zeros((len(streams), len(nodes)))
        result[rows[known], columns[known]] = self._parts[known]
        return result

    @cached_property
    def _pairs(self) -> Ints:
        """The streams and nodes of `read`, int64[pairs, 2]."""
        return np.array(list(self.read), np.int64).reshape(-1, 2)

    @cached_property
    def _parts(self) -> Floats:
        """The parts of `read`, float64[pairs]."""
        return np.array(list(self.read.values()), float)


def _places(values: Ints, of: Sequence[int]) -> tuple[Ints, Flags]:
    """Return the place of each value in a sequence, and which of them it has."""
    if not of:
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    order = np.argsort(of, kind="stable")
    known = np.array(of, np.int64)[order]
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return order[places], known[places] == values


@lru_cache(maxsize=_REMEMBERED)
def routes_of(cluster: int, version: int) -> Routes:
    """Return the routes of a cluster (its id), remembered by the applied routing version."""
    tasks = Task.objects.filter(query__cluster=cluster, query__state__in=LIVE_STATES).order_by()
    whole = tasks.filter(query__task_count=1)
    pairs = whole.values_list("query__subscriptions__stream", "node__index").distinct()
    read = {(stream, node): 1.0 for stream, node in pairs if stream is not None}
    split = Query.objects.filter(cluster=cluster, state__in=LIVE_STATES, task_count__gt=1)
    ranges = Task.ranges(tasks.filter(query__task_count__gt=1))
    streams: dict[int, list[int]] = {}
    for pk, stream in QueryStream.objects.filter(query__in=split).values_list("query", "stream"):
        streams.setdefault(pk, []).append(stream)
    partials: dict[tuple[int, int], int] = {}
    for query in split.select_related("aggregator"):
        for node, start, stop in ranges.get(query.pk, ()):
            for stream in streams.get(query.pk, ()):
                # The parts that two queries read are taken as independent of each other.
                known = read.get((stream, node), 0.0)
                read[stream, node] = 1 - (1 - known) * (1 - (stop - start) / query.task_count)
            for aggregator in query.aggregators:
                partials[node, aggregator] = partials.get((node, aggregator), 0) + stop - start
    return Routes(read, partials)
