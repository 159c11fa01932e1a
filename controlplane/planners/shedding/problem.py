"""The query network of a cluster: the drop locations and loads of the data plane (paper 003, 3).

A stream is an input. Its split node reads a record once; each node gets it once for all of its
queries; queries with the same computation on the same tasks are computed once. Nodes share the
records of a query of several tasks, so its work is a chain of operators, one per node, each of
which takes its part of every record; drop locations are the edges of the data plane only.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, NamedTuple

from algorithms.shedding.network import ARROW, Network, Operator, OperatorKind
from algorithms.shedding.problem import SheddingProblem
from controlplane.errors import Conflict
from controlplane.planners.shedding.groups import QueryGroup, Shares, query_groups
from controlplane.planners.shedding.inputs import FAIR, SheddingInput, SheddingStream
from controlplane.planners.shedding.node_costs import NodeCosts, names_listed
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.drop_rules import INPUT, Edge
from controlplane.wire.routing.ladder import Cost, ResourceKind

NO_QUERY: Final = "No query runs, so there is nothing to drop: submit a query"
# Routings of one stream on one node whose common records are counted once: 64 subsets.
_INDEPENDENT: Final = 6
NO_RECORDS: Final = "No records arrived in the last minute: wait until records arrive"


class Resource(NamedTuple):
    """What has a capacity: the time of a split node, node or aggregator node by its number."""

    kind: ResourceKind
    number: int

    @property
    def name(self) -> str:
        """Return its name in a network."""
        return f"{self.kind} {self.number}"


class NodeDelivery(NamedTuple):
    """The delivery of records of a stream to a node with an emulated capacity.

    `tasks`: of the records that these routings, and no others, assign to tasks on the node.
    """

    stream: int
    node: int
    tasks: frozenset[tuple[str, Shares]]


@dataclass
class ClusterNetwork:
    """The network of a snapshot, and what its locations and loads are in the data plane.

    `locations`: the drop location of each edge; `groups`: the queries by their leader. `costs`: of
    edges with a cost of their own, by edge; `deliveries`: the seconds of an emulated node that a
    record of a stream takes which some leaders share: if one of them keeps it. `nodes`: the costs
    of nodes and how they are known.
    """

    problem: SheddingProblem
    groups: Mapping[int, QueryGroup]
    locations: Mapping[Edge, str]
    costs: Sequence[Cost]
    deliveries: Mapping[NodeDelivery, tuple[tuple[int, ...], Cost]]
    nodes: NodeCosts


def network_of(snapshot: ClusterSnapshot) -> ClusterNetwork:
    """Return the query network of a snapshot.

    Raises `Conflict` no_query, no_rates, no_costs, which name what is not measured.
    """
    given = snapshot.input(SheddingInput)
    if given is None or not given.queries:
        raise Conflict("no_query", NO_QUERY)
    _require_rates(given)
    groups = query_groups(snapshot, given)
    return _Builder(given, groups, NodeCosts(given, groups)).network()


def _require_rates(given: SheddingInput) -> None:
    unknown = [stream.name for stream in given.streams if stream.rate is None]
    if unknown:
        message = f"The rate of {names_listed(unknown)} is not measured: wait until records arrive"
        raise Conflict("no_rates", message, {"streams": unknown})
    if not any(stream.rate for stream in given.streams):
        raise Conflict("no_rates", NO_RECORDS, {"streams": [s.name for s in given.streams]})


@dataclass
class _Builder:
    """Builds the operators of a network, and the costs of its edges."""

    given: SheddingInput
    groups: Sequence[QueryGroup]
    seconds: NodeCosts
    operators: list[Operator] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    # By delivery: its leaders, and its cost per record of the stream.
    delivered: dict[NodeDelivery, tuple[tuple[int, ...], Cost]] = field(default_factory=dict)
    # By the operator of a delivery: the operators that get its records.
    covers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # The operator that a group's records of a stream come from, and the first of the group.
    sources: dict[Edge, tuple[str, str]] = field(default_factory=dict)

    def network(self) -> ClusterNetwork:
        """Return the network with its problem at the measured rates."""
        read = {stream for group in self.groups for stream in group.leader.streams}
        streams = [stream for stream in self.given.streams if stream.id in read]
        for stream in streams:
            self._split(stream)
        is_fair = self.given.settings.objective == FAIR
        outputs, floors = {}, {}
        for group in self.groups:
            name = self._group(group)
            outputs[name] = group.fair_weight if is_fair else group.weight
            floors[name] = group.floor
        for stream in streams:
            self._deliver(stream.id)
        used = {operator.node for operator in self.operators}
        network = Network(
            dict.fromkeys(sorted(used), self.given.settings.limit),
            tuple(f"stream {stream.id}" for stream in streams),
            tuple(self.operators),
            outputs,
            floors={name: floor for name, floor in floors.items() if floor},
            covers=self.covers,
        )
        rates = {f"stream {stream.id}": stream.rate or 0.0 for stream in streams}
        return ClusterNetwork(
            SheddingProblem(network, rates),
            {group.leader.id: group for group in self.groups},
            dict(self._locations(network)),
            self.costs,
            self.delivered,
            self.seconds,
        )

    def _split(self, stream: SheddingStream) -> None:
        """Add the work of the split nodes that read the stream, or parts of it, for all queries."""
        source, name = f"stream {stream.id}", _split_name(stream.id)
        # Each has its part of the work on all records, so a chain has the loads of all.
        *others, last = stream.shares or [(stream.split, 1.0)]
        ends = [*((f"{name} at {split}", split, part) for split, part in others), (name, *last)]
        for end, split, part in ends:
            resource, seconds = Resource(ResourceKind.SPLIT, split), part * self.seconds.split
            self._add(end, resource, seconds, source)
            self._cost(stream.id, INPUT, resource, seconds)
            source = end

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
        sources = tuple(map(_split_name, streams))
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

    def _deliver(self, stream: int) -> None:
        """Add the deliveries of a stream to emulated nodes.

        A node gets a record once if some query of it keeps it and the record is of a task there.
        Routings assign records to tasks independently, so the records of each subset of them have
        a part of their own; the sample is nested, so such a record is delivered if the query of
        them that keeps the most keeps it: the operator covers theirs.
        """
        routings: dict[int, dict[tuple[str, Shares], list[QueryGroup]]] = {}
        for group in self.groups:
            if stream in group.leader.streams:
                for node, _ in group.shares:
                    if node in self.seconds.emulated:
                        key = group.leader.routing, group.shares
                        routings.setdefault(node, {}).setdefault(key, []).append(group)
        for node, readers in sorted(routings.items()):
            parts = {key: dict(key[1])[node] for key in readers}
            for tasks, part in _subsets(parts):
                groups = [group for key in tasks for group in readers[key]]
                self._deliver_to(NodeDelivery(stream, node, frozenset(tasks)), groups, part)

    def _deliver_to(
        self, delivery: NodeDelivery, groups: Sequence[QueryGroup], part: float
    ) -> None:
        stream, node, _ = delivery
        resource = Resource(ResourceKind.NODE, node)
        seconds = part * self.seconds.emulated[node]
        name = f"delivery {len(self.delivered)} on {node}"
        self._add(name, resource, seconds, _split_name(stream))
        self.covers[name] = tuple(self.sources[stream, group.leader.id][1] for group in groups)
        leaders = tuple(group.leader.id for group in groups)
        self.delivered[delivery] = leaders, Cost(stream, INPUT, *resource, seconds)

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
        """Return the results per record of a stream: 1 if the query is not a join."""
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
            emulated = self.seconds.is_emulated(node)
            resource = Resource(ResourceKind.AGGREGATOR if emulated else ResourceKind.NODE, node)
            usable_s = self.seconds.merging(node, seconds)
            name = f"query {group.leader.id} merged on {node}"
            self._add(name, resource, usable_s, end)
            for stream in group.leader.streams:
                gain = self._gain(group, stream)
                self._cost(stream, group.leader.id, resource, gain * usable_s)
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


def _subsets(
    parts: Mapping[tuple[str, Shares], float],
) -> Iterator[tuple[tuple[tuple[str, Shares], ...], float]]:
    """Yield the subsets of routings with the part of records that they alone assign to a node.

    `parts`: of all records that each assigns to it. Beyond `_INDEPENDENT` routings, the records of
    the others count once for each of them, which is more than are delivered.
    """
    whole = tuple(key for key, part in parts.items() if part == 1)
    others = sorted((key for key in parts if key not in whole), key=lambda key: -parts[key])
    for size in range(len(others[:_INDEPENDENT]) + 1):
        for some in combinations(others[:_INDEPENDENT], size):
            chances = [
                parts[key] if key in some else 1 - parts[key] for key in others[:_INDEPENDENT]
            ]
            if whole or some:
                yield (*whole, *some), math.prod(chances)
    yield from (((key,), parts[key]) for key in others[_INDEPENDENT:])


def _split_name(stream: int) -> str:
    return f"split of {stream}"
