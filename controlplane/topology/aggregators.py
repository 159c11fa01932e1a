"""Aggregator nodes of queries: their choice, and changes while a query runs.

A node is chosen for the fewest merged queries, then the least traffic, both by capacity. Merging
costs a node little beside its records, so what it merges already counts before what it reads:
queries that are placed together do not all choose the same node.
"""

from collections import Counter
from collections.abc import Sequence

from controlplane.access.roles import Actor
from controlplane.errors import Invalid
from controlplane.models import Cluster, Node, Query
from controlplane.planning.online import OnlineProblem, read_online
from controlplane.topology.key_groupings import QuerySetting, change_query
from controlplane.wire.routing.query_actions import SetAggregators

# A query is merged as long as the routing table has it.
ROUTED = (Query.State.RUNNING, Query.State.ENDING)


class AggregatorNodes:
    """The active nodes of an online problem, with how many queries each merges."""

    def __init__(self, cluster: Cluster, problem: OnlineProblem) -> None:
        self._problem = problem
        merged = Query.objects.filter(cluster=cluster, state__in=ROUTED, aggregator__isnull=False)
        self._merges = Counter(merged.values_list("aggregator_id", flat=True))
        pk_of = {node.index: node.pk for node in problem.nodes}
        several = merged.exclude(more_aggregators=[]).values_list("more_aggregators", flat=True)
        self._merges.update(pk_of[index] for more in several for index in more if index in pk_of)

    def take(self) -> Node:
        """Return the node for one more query and count it there."""
        return self._take(self._problem.nodes)

    def give(self, node: Node) -> None:
        """Count one more query at a node that somebody else chose."""
        self._merges[node.pk] += 1

    def other_than(self, present: Node) -> Node | None:
        """Return the node for a query that `present` merges, None where there is no other."""
        others = [node for node in self._problem.nodes if node.pk != present.pk]
        return self._take(others) if others else None

    def take_several(self, count: int, present: Sequence[Node]) -> list[Node]:
        """Return `count` different nodes, present ones first; fewer where there are not as many."""
        chosen = list(present[:count])
        while len(chosen) < count:
            others = [node for node in self._problem.nodes if node not in chosen]
            if not others:
                break
            chosen.append(self._take(others))
        return chosen

    def _take(self, nodes: Sequence[Node]) -> Node:
        traffic = dict(zip(self._problem.nodes, self._problem.state.traffic, strict=True))
        chosen = min(
            nodes,
            key=lambda node: (
                self._merges[node.pk] / node.capacity, traffic[node] / node.capacity, node.index,
            ),
        )  # fmt: skip
        self._merges[chosen.pk] += 1
        return chosen


def set_aggregator(actor: Actor, query: Query, index: int | None, reason: str = "") -> Query:
    """Set the aggregator of a running query, None for the least loaded other node.

    Raises `Invalid`, and as `change_query`.
    """

    def decide(cluster: Cluster, query: Query) -> QuerySetting:
        assert query.aggregator is not None
        if index is None:
            node = _least_loaded(cluster, query.aggregator)
        else:
            node = _active_node(cluster, index)
        return _setting("aggregator", query, [node])

    return change_query(actor, query, reason, decide)


def set_aggregator_count(actor: Actor, query: Query, count: int, reason: str = "") -> Query:
    """Set the number of aggregator nodes of a running query; each has its share of the keys.

    Present ones stay as far as possible, the least loaded others are added. Raises `Invalid`, and
    as `change_query`.
    """

    def decide(cluster: Cluster, query: Query) -> QuerySetting:
        nodes = {node.index: node for node in cluster.nodes.filter(active=True)}
        if not 1 <= count <= len(nodes):
            message = f"Must be 1 to {len(nodes)}, the active nodes, not {count:,}"
            raise Invalid({"count": [message]})
        problem = read_online(cluster)
        assert problem is not None, "there are active nodes"
        present = [nodes[index] for index in query.aggregators if index in nodes]
        chosen = AggregatorNodes(cluster, problem).take_several(count, present)
        return _setting("aggregators", query, chosen)

    return change_query(actor, query, reason, decide)


def _setting(name: str, query: Query, nodes: Sequence[Node]) -> QuerySetting:
    indices = [node.index for node in nodes]
    summary = f"{query.name} is merged on {', '.join(node.name for node in nodes)}"
    action = SetAggregators(query.pk, tuple(indices))
    return QuerySetting(name, {name: query.aggregators}, {name: indices}, summary, action)


def _active_node(cluster: Cluster, index: int) -> Node:
    node = cluster.nodes.filter(index=index).first()
    if node is None:
        raise Invalid({"node": [f"There is no node {index}"]})
    if not node.active:
        raise Invalid({"node": [f"{node.name} is not active"]})
    return node


def _least_loaded(cluster: Cluster, present: Node) -> Node:
    problem = read_online(cluster)
    node = None if problem is None else AggregatorNodes(cluster, problem).other_than(present)
    if node is None:
        raise Invalid({"node": ["No other node is active"]})
    return node


def queries_aggregated_by(nodes: Sequence[Node]) -> list[str]:
    """Return the names of the queries whose windows these nodes merge."""
    routed = Query.objects.filter(state__in=ROUTED)
    names = set(routed.filter(aggregator__in=nodes).values_list("name", flat=True))
    indices = {(node.cluster_id, node.index) for node in nodes}
    several = routed.filter(cluster__in={cluster for cluster, _ in indices})
    for name, cluster, more in several.exclude(more_aggregators=[]).values_list(
        "name", "cluster", "more_aggregators"
    ):
        if any((cluster, index) in indices for index in more):
            names.add(name)
    return sorted(names)
