"""The query network of a cluster: the drop locations and loads of the data plane (paper 003, 3).

A stream is an input. Its split node reads a record once; each node gets it once for all of its
queries; queries with the same computation on the same tasks are computed once. Nodes share the
records of a query of several tasks, so its work is a chain of operators, one per node, each of
which takes its part of every record; drop locations are the edges of the data plane only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from algorithms.shedding.network import ARROW, Network, Operator, OperatorKind
from algorithms.shedding.problem import SheddingProblem
from controlplane.errors import Conflict
from controlplane.planning.key_loads import owners_of
from controlplane.plans.shedding_input import SheddingInput, SheddingQuery
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Cost, ResourceKind
from controlplane.wire.routing.route import NO_AGGREGATOR

NO_QUERY: Final = "No query runs, so there is nothing to drop: submit a query"
NO_RECORDS: Final = "No records arrived in the last minute: wait until records arrive"
# The most names in a message.
_NAMED: Final = 5
# (Node index, part of a query's records) in the order of the nodes.
Shares = tuple[tuple[int, float], ...]
# Decimals of a part of a query's records.
_DECIMALS: Final = 9


class Resource(NamedTuple):
    """What has a capacity: the time of a split node, node or aggregator node by its number."""

    kind: ResourceKind
    number: int

    @property
    def name(self) -> str:
        """Return its name in a network."""
        return f"{self.kind} {self.number}"


@dataclass(frozen=True)
class QueryGroup:
    """Queries that nodes compute once, on the same tasks.

    `shares`: the part of its records by node index; `weight`: the sum, `floor`: the largest one.
    """

    queries: tuple[SheddingQuery, ...]
    shares: Shares
    aggregators: tuple[int, ...]

    @property
    def leader(self) -> SheddingQuery:
        """Return the query that stands for all."""
        return self.queries[0]

    @property
    def weight(self) -> float:
        """Return the value of one record."""
        return sum(query.weight for query in self.queries)

    @property
    def floor(self) -> float:
        """Return the least part of its records that is kept."""
        return max(query.floor for query in self.queries)


class Delivery(NamedTuple):
    """The delivery of a stream to nodes with an emulated capacity, for all queries of a routing."""

    stream: int
    routing: tuple[str, Shares]


@dataclass
class ClusterNetwork:
    """The network of a snapshot, and what its locations and loads are in the data plane.

    `locations`: the drop location of each edge; `groups`: the queries by their leader. `costs`: of
    edges with a cost of their own, by edge; `deliveries`: the seconds on emulated nodes of a record
    that is delivered for some leaders together.
    """

    problem: SheddingProblem
    groups: Mapping[int, QueryGroup]
    locations: Mapping[Edge, str]
    costs: Sequence[Cost]
    deliveries: Mapping[Delivery, tuple[tuple[int, ...], Sequence[Cost]]]


def network_of(snapshot: ClusterSnapshot) -> ClusterNetwork:
    """Return the query network of a snapshot.

    Raises `Conflict` no_query, no_rates, no_costs, which name what is not measured.
    """
    given = snapshot.shedding
    if given is None or not given.queries:
        raise Conflict("no_query", NO_QUERY)
    _require_rates(given)
    groups = query_groups(snapshot, given)
    return _Builder(given, groups, _Seconds(given, groups)).network()


def query_groups(snapshot: ClusterSnapshot, given: SheddingInput) -> list[QueryGroup]:
    """Return the running queries in the groups that nodes compute once."""
    shares: dict[int, Shares] = {row.id: ((row.node, 1.0),) for row in snapshot.queries}
    shares |= {row.id: _shares(row.ranges, row.work) for row in snapshot.split}
    aggregators = {
        row.query: (row.aggregator, *row.more_aggregators)
        for row in snapshot.groupings
        if row.aggregator != NO_AGGREGATOR
    }
    alike: dict[tuple[int, Shares], list[SheddingQuery]] = {}
    for query in given.queries:
        # A query that started since the rows were read has no tasks yet.
        if query.id in shares and query.streams:
            alike.setdefault((query.shared, shares[query.id]), []).append(query)
    return [
        QueryGroup(tuple(queries), placed, aggregators.get(queries[0].id, ()))
        for (_, placed), queries in alike.items()
    ]


def _shares(
    ranges: Sequence[Sequence[int]], work: Sequence[float]
) -> tuple[tuple[int, float], ...]:
    """Return the part of a query's records by node: measured, or equal for all tasks."""
    owners = owners_of([list(item) for item in ranges])
    measured = sum(work) > 0
    total = sum(work) if measured else len(owners)
    parts: dict[int, float] = {}
    for task, node in enumerate(owners):
        parts[node] = parts.get(node, 0.0) + (work[task] if measured else 1.0) / total
    return tuple((node, round(part, _DECIMALS)) for node, part in sorted(parts.items()))


def _require_rates(given: SheddingInput) -> None:
    unknown = [stream.name for stream in given.streams if stream.rate is None]
    if unknown:
        message = f"The rate of {_listed(unknown)} is not measured: wait until records arrive"
        raise Conflict("no_rates", message, {"streams": unknown})
    if not any(stream.rate for stream in given.streams):
        raise Conflict("no_rates", NO_RECORDS, {"streams": [s.name for s in given.streams]})


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


class _Seconds:
    """The seconds of nodes per record of a query: the measured ones, or those of the others.

    A node's time per delivered record is divided among the queries that it computes: its time per
    record and query is that time over the number of queries per delivered record.
    """

    def __init__(self, given: SheddingInput, groups: Sequence[QueryGroup]) -> None:
        self.emulated = {node.node: node.seconds or 0.0 for node in given.nodes if node.emulated}
        delivered, computed = _records(given, groups)
        self._seconds: dict[int, float] = {}
        for node in given.nodes:
            if node.seconds is not None and not node.emulated and computed.get(node.node):
                ratio = delivered[node.node] / computed[node.node]
                self._seconds[node.node] = node.seconds * ratio
        self._others = sorted(self._seconds.values())[len(self._seconds) // 2 :][:1]
        self._require(given, groups)

    def of(self, node: int) -> float:
        """Return the seconds per record of a query; 0 on an emulated node, which delivery fills."""
        if node in self.emulated:
            return 0.0
        return self._seconds.get(node, self._others[0] if self._others else 0.0)

    def is_measured(self, node: int) -> bool:
        """Return whether the node's time per record is measured."""
        return node not in self.emulated

    def _require(self, given: SheddingInput, groups: Sequence[QueryGroup]) -> None:
        """Raise `Conflict` if a node with queries has no cost, and no other node has one."""
        if self._others:
            return
        used = {node for group in groups for node, _ in group.shares} - self.emulated.keys()
        if not used:
            return
        names = [node.name for node in given.nodes if node.node in used]
        message = (
            f"The time per record of {_listed(names)} is not measured: wait until a node is busy"
            " for a quarter of its time, or emulate the capacities of the nodes"
        )
        raise Conflict("no_costs", message, {"nodes": names})


def _records(
    given: SheddingInput, groups: Sequence[QueryGroup]
) -> tuple[dict[int, float], dict[int, float]]:
    """Return the records/s that are delivered to each node, and those of its queries, by index."""
    rates = given.rates
    delivered: dict[tuple[int, int], float] = {}
    computed: dict[int, float] = {}
    for group in groups:
        for node, part in group.shares:
            for stream in group.leader.streams:
                records = rates[stream] * part
                computed[node] = computed.get(node, 0.0) + records
                delivered[node, stream] = max(delivered.get((node, stream), 0.0), records)
    result: dict[int, float] = {}
    for (node, _), records in delivered.items():
        result[node] = result.get(node, 0.0) + records
    return result, computed


@dataclass
class _Builder:
    """Builds the operators of a network, and the costs of its edges."""

    given: SheddingInput
    groups: Sequence[QueryGroup]
    seconds: _Seconds
    operators: list[Operator] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    # By delivery: the operator that ends it, its leaders, and its costs per record.
    delivered: dict[Delivery, tuple[str, list[int], list[Cost]]] = field(default_factory=dict)
    # The operator that a group's records of a stream come from, and the first of the group.
    sources: dict[Edge, tuple[str, str]] = field(default_factory=dict)

    def network(self) -> ClusterNetwork:
        """Return the network with its problem at the measured rates."""
        read = {stream for group in self.groups for stream in group.leader.streams}
        streams = [stream for stream in self.given.streams if stream.id in read]
        for stream in streams:
            self._split(stream.id, stream.split)
        outputs, floors = {}, {}
        for group in self.groups:
            name = self._group(group)
            outputs[name], floors[name] = group.weight, group.floor
        used = {operator.node for operator in self.operators}
        network = Network(
            dict.fromkeys(sorted(used), self.given.settings.limit),
            tuple(f"stream {stream.id}" for stream in streams),
            tuple(self.operators),
            outputs,
            floors={name: floor for name, floor in floors.items() if floor},
        )
        rates = {f"stream {stream.id}": stream.rate or 0.0 for stream in streams}
        return ClusterNetwork(
            SheddingProblem(network, rates),
            {group.leader.id: group for group in self.groups},
            dict(self._locations(network)),
            self.costs,
            {key: (tuple(leaders), costs) for key, (_, leaders, costs) in self.delivered.items()},
        )

    def _split(self, stream: int, split: int) -> None:
        """Add the work of the split node, which reads the stream for all queries."""
        resource, seconds = Resource(ResourceKind.SPLIT, split), self.given.split_seconds or 0.0
        self._add(_split_name(stream), resource, seconds, f"stream {stream}")
        self._cost(stream, INPUT, resource, seconds)

    def _group(self, group: QueryGroup) -> str:
        """Add the operators of a group; return the name of the last one."""
        query, name = group.leader, f"query {group.leader.id}"
        left = [stream for stream in query.streams if stream not in query.right]
        if query.right:
            ends = [
                self._computed(group, streams, f"{name} {side}")
                for side, streams in (("left", left), ("right", query.right))
            ]
            end = self._joined(group, name, ends)
        else:
            end = self._computed(group, left, name)
        return self._merged(group, end)

    def _computed(self, group: QueryGroup, streams: Sequence[int], name: str) -> str:
        """Add the work on the records of some streams: one operator per node."""
        sources = tuple(self._source(group, stream) for stream in streams)
        for stream, source in zip(streams, sources, strict=True):
            self.sources[stream, group.leader.id] = source, name
        end = name
        for number, (node, part) in enumerate(group.shares):
            resource, seconds = Resource(ResourceKind.NODE, node), part * self.seconds.of(node)
            end = name if number == 0 else f"{name} on {node}"
            self._add(end, resource, seconds, *(sources if number == 0 else (self._last,)))
            for stream in streams:
                self._cost(stream, group.leader.id, resource, seconds)
        return end

    def _source(self, group: QueryGroup, stream: int) -> str:
        """Return the operator that delivers a stream to a group; add one for emulated nodes."""
        emulated = [
            (node, part, self.seconds.emulated[node])
            for node, part in group.shares
            if node in self.seconds.emulated
        ]
        if not emulated:
            return _split_name(stream)
        key = Delivery(stream, (group.leader.routing, group.shares))
        if key not in self.delivered:
            source, costs = _split_name(stream), list[Cost]()
            for node, part, seconds in emulated:
                resource = Resource(ResourceKind.NODE, node)
                name = f"delivery {len(self.delivered)} on {node}"
                self._add(name, resource, part * seconds, source)
                costs.append(Cost(stream, INPUT, *resource, part * seconds))
                source = name
            self.delivered[key] = source, [], costs
        self.delivered[key][1].append(group.leader.id)
        return self.delivered[key][0]

    def _joined(self, group: QueryGroup, name: str, ends: Sequence[str]) -> str:
        """Add the join: the windows of both sides are as full as their rates make them.

        All results have the value of all records.
        """
        left, right = self._sides(group)
        seconds = group.leader.window_ms / 1000
        windows = (seconds * left, seconds * right)
        results = left * windows[1] + right * windows[0]
        selectivity = (left + right) / results if results else 0.0
        resource = Resource(ResourceKind.NODE, group.shares[0][0])
        self.operators.append(
            Operator(name, resource.name, 0.0, selectivity, tuple(ends), OperatorKind.JOIN, windows)
        )
        return name

    def _sides(self, group: QueryGroup) -> tuple[float, float]:
        """Return the records/s of both sides of a join."""
        rates, query = self.given.rates, group.leader
        right = sum(rates[stream] for stream in query.right)
        return sum(rates[stream] for stream in query.streams) - right, right

    def _gain(self, group: QueryGroup, stream: int) -> float:
        """Return the results per record of a stream: 1 if the query is no join."""
        if not group.leader.right:
            return 1.0
        sides = self._sides(group)
        own = sides[stream in group.leader.right]
        return sum(sides) / (2 * own) if all(sides) else 0.0

    def _merged(self, group: QueryGroup, end: str) -> str:
        """Add the work of the aggregator nodes; return the name of the last operator."""
        given = self.given
        if not group.aggregators or not given.merge_s or not given.partials_per_record:
            return end
        seconds = given.merge_s * given.partials_per_record / len(group.aggregators)
        for node in group.aggregators:
            measured = self.seconds.is_measured(node)
            kind = ResourceKind.NODE if measured else ResourceKind.AGGREGATOR
            name = f"query {group.leader.id} merged on {node}"
            self._add(name, Resource(kind, node), seconds, end)
            for stream in group.leader.streams:
                gain = self._gain(group, stream)
                self._cost(stream, group.leader.id, Resource(kind, node), gain * seconds)
            end = name
        return end

    def _add(self, name: str, resource: Resource, seconds: float, *sources: str) -> None:
        kind = OperatorKind.CHAIN if len(sources) == 1 else OperatorKind.UNION
        self.operators.append(Operator(name, resource.name, seconds, 1.0, sources, kind))

    @property
    def _last(self) -> str:
        return self.operators[-1].name

    def _cost(self, stream: int, query: int, resource: Resource, seconds: float) -> None:
        if seconds > 0:
            self.costs.append(Cost(stream, query, *resource, seconds))

    def _locations(self, network: Network) -> Iterator[tuple[Edge, str]]:
        """Yield the drop location of each input edge, and of each edge to a query that has one."""
        known = set(network.locations)
        for name in network.inputs:
            yield (int(name.removeprefix("stream ")), INPUT), name
        for (stream, query), (source, target) in self.sources.items():
            ends = source, target
            while ARROW.join(ends) not in known and ends[0] in network.by_name:
                ends = network.by_name[ends[0]].sources[0], ends[0]
            place = ARROW.join(ends)
            yield (stream, query), place if place in known else f"stream {stream}"


def _split_name(stream: int) -> str:
    return f"split of {stream}"
