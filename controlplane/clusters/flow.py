"""The flow of records through a cluster: streams, split nodes, nodes, aggregator nodes.

Rates of streams, split nodes, nodes and aggregator nodes are measured. What a node receives is
divided among the split nodes, and what an aggregator node merges among the nodes, by the routing
table (`routes_of`) and the measured rates of the streams.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np

from algorithms.vocabulary import Flags, Floats, Ints
from controlplane.catalog.split_reading import reading_of
from controlplane.models import Cluster, Node, Query, QueryStream, Stream, Task
from controlplane.models.query import LIVE_STATES
from controlplane.telemetry import arrivals
from controlplane.telemetry.grid import Grid
from controlplane.telemetry.measures import TEN_S
from controlplane.telemetry.series import fitting_seconds
from controlplane.telemetry.series import read as read_series

# Routing versions of clusters that are remembered by a process.
_REMEMBERED: Final = 16
# Streams that are shown one by one, the largest.
MOST_STREAMS: Final = 8
_SERIES: Final = ("loads", "merged", "node_bytes", "split_loads", "split_bytes")


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
    streams = QueryStream.by_query(QueryStream.objects.filter(query__in=split))
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


class FlowUnit(StrEnum):
    """What a flow counts per second."""

    RECORDS = "records"
    BYTES = "bytes"


@dataclass(frozen=True)
class StreamFlow:
    """A stream, or the other streams together; `rate`: per second. `id`: None for the others."""

    id: int | None
    name: str
    rate: float
    count: int = 1


@dataclass(frozen=True)
class SplitFlow:
    """A split node: what it reads, and what it sends to nodes, per second."""

    index: int
    read: float
    sent: float


@dataclass(frozen=True)
class NodeFlow:
    """A node: what it receives per second, and its load over capacity in records."""

    index: int
    name: str
    rate: float
    share: float


@dataclass(frozen=True)
class Link:
    """A flow per second from one place to the next, by their places in the lists of the flow."""

    source: int
    target: int
    rate: float


@dataclass(frozen=True)
class ClusterFlow:
    """The flow in a time range. `aggregators`: merged partial results/s, in both units.

    `split_links`: from streams to split nodes; `node_links`: from split nodes to nodes;
    `aggregator_links`: from nodes to aggregator nodes.
    """

    unit: FlowUnit
    streams: Sequence[StreamFlow]
    splits: Sequence[SplitFlow]
    nodes: Sequence[NodeFlow]
    aggregators: Sequence[NodeFlow]
    split_links: Sequence[Link]
    node_links: Sequence[Link]
    aggregator_links: Sequence[Link]


class _StreamColumns(NamedTuple):
    """Columns of a stream."""

    id: int
    name: str
    rate: float | None


class _Reading(NamedTuple):
    """Which split node reads which part of a stream, by the place of the stream."""

    streams: Ints
    splits: Ints
    parts: Floats

    @classmethod
    def of(cls, cluster: Cluster, streams: Sequence[_StreamColumns]) -> "_Reading":
        shares = reading_of(cluster).shares()
        rows = [(place, split, part) for place, stream in enumerate(streams)
                for split, part in shares.get(stream.id, {}).items()]  # fmt: skip
        columns = np.array(rows, np.float64).reshape(-1, 3).T
        return cls(columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2])


def flow_of(cluster: Cluster, start: datetime, end: datetime, unit: FlowUnit) -> ClusterFlow:
    """Return the mean flow of a time range."""
    nodes = list(cluster.nodes.order_by("index"))
    # Without model instances, which take most of the time for ten thousand streams.
    stored = Stream.objects.filter(cluster=cluster).order_by("pk")
    streams = [_StreamColumns(*row) for row in stored.values_list(*_StreamColumns._fields)]
    reading = _Reading.of(cluster, streams)
    count = max(cluster.splits, int(reading.splits.max(initial=-1)) + 1)
    seconds = fitting_seconds(start, end, least=TEN_S)
    series = read_series(cluster, (*_SERIES, "arrived", "in"), start, end, seconds).window()
    indices = [node.index for node in nodes]
    loads, merged, node_bytes = (_means(series, name, indices) for name in _SERIES[:3])
    read, read_bytes = (_means(series, name, range(count)) for name in _SERIES[3:])
    rates = _stream_rates(cluster, streams, start, end)
    routes = routes_of(cluster.pk, cluster.applied_version)
    parts = routes.parts([stream.id for stream in streams], [node.index for node in nodes])
    rates_read = rates[reading.streams] * reading.parts
    sent = _sent(parts[reading.streams], rates_read, reading.splits, count, loads)
    # Of samples without split nodes, what arrives.
    read = read if read.any() else np.bincount(reading.splits, rates_read, count).astype(float)
    node_factor, split_factor = np.ones(len(nodes)), np.ones(count)
    if unit is FlowUnit.BYTES:
        node_factor = _quotient(node_bytes, loads)
        split_factor = _quotient(read_bytes, read)
    shown, split_links = _stream_flows(streams, rates_read * split_factor[reading.splits], reading)
    sent = sent * node_factor
    aggregators, aggregator_links = _aggregators(nodes, merged, routes)
    return ClusterFlow(
        unit=unit,
        streams=shown,
        splits=[
            SplitFlow(i, float(read[i] * split_factor[i]), float(sent[i].sum()))
            for i in range(count)
        ],
        nodes=[_node_flow(node, loads[i], node_factor[i]) for i, node in enumerate(nodes)],
        aggregators=aggregators,
        split_links=split_links,
        node_links=_links(sent),
        aggregator_links=aggregator_links,
    )


def _node_flow(node: Node, load: float, factor: float) -> NodeFlow:
    return NodeFlow(node.index, node.name, float(load * factor), float(load) / node.capacity)


def _means(series: Grid, name: str, indices: Sequence[int]) -> Floats:
    """Return the mean rate of arriving records at each index, 0 if it is not known.

    float64[indices]; of nodes, as their table and their load over capacity have it.
    """
    means = np.nan_to_num(series.arriving(name)[0])
    return np.array([means[index] if index < len(means) else 0.0 for index in indices])


def _stream_rates(
    cluster: Cluster, streams: Sequence[_StreamColumns], start: datetime, end: datetime
) -> Floats:
    """Return the records/s of streams: the mean of the range, else the newest rate."""
    means = arrivals.rates_between(cluster, start, end, [stream.id for stream in streams]).means
    return np.array([means.get(stream.id, stream.rate or 0.0) for stream in streams])


def _sent(parts: Floats, rates: Floats, splits: Ints, count: int, loads: Floats) -> Floats:
    """Return the records/s from split nodes to nodes, float64[splits, nodes].

    What the routing table divides is scaled to the measured load of each node.
    """
    routed = np.zeros((count, len(loads)))
    np.add.at(routed, splits, rates[:, None] * parts)
    totals = routed.sum(axis=0)
    return routed * _quotient(loads, totals)


def _quotient(values: Floats, by: Floats) -> Floats:
    result: Floats = np.divide(values, by, out=np.zeros(len(values)), where=by > 0)
    return result


def _links(rates: Floats) -> list[Link]:
    sources, targets = np.nonzero(rates > 0)
    return [
        Link(s, t, float(rates[s, t]))
        for s, t in zip(sources.tolist(), targets.tolist(), strict=True)
    ]


def _stream_flows(
    streams: Sequence[_StreamColumns], rates: Floats, reading: "_Reading"
) -> tuple[list[StreamFlow], list[Link]]:
    """Return the largest streams and the others together, with their links to split nodes."""
    totals = np.bincount(reading.streams, rates, len(streams))
    order = np.argsort(-totals, kind="stable").tolist()
    shown, others = order[:MOST_STREAMS], order[MOST_STREAMS:]
    flows = [StreamFlow(streams[i].id, streams[i].name, float(totals[i])) for i in shown]
    if others:
        total = float(totals[others].sum())
        flows.append(StreamFlow(None, f"{len(others)} other streams", total, len(others)))
    # The other streams have the last place.
    places = np.full(len(streams), len(shown))
    places[shown] = np.arange(len(shown))
    drawn = np.zeros((len(shown) + 1, int(reading.splits.max(initial=0)) + 1))
    np.add.at(drawn, (places[reading.streams], reading.splits), rates)
    return flows, _links(drawn)


def _aggregators(
    nodes: Sequence[Node], merged: Floats, routes: Routes
) -> tuple[list[NodeFlow], list[Link]]:
    """Return the aggregator nodes with what they merge, by the tasks of the sending nodes."""
    targets = {aggregator for _, aggregator in routes.partials}
    merging = [i for i, node in enumerate(nodes) if merged[i] > 0 and node.index in targets]
    flows = [_node_flow(nodes[i], merged[i], 1.0) for i in merging]
    links = []
    for place, i in enumerate(merging):
        tasks = {
            source: routes.partials.get((node.index, nodes[i].index), 0)
            for source, node in enumerate(nodes)
        }
        total = sum(tasks.values())
        links += [
            Link(source, place, float(merged[i]) * number / total)
            for source, number in tasks.items()
            if number
        ]
    return flows, links
