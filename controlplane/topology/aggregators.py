"""Choice of aggregator nodes: the fewest merged queries, then the least traffic.

All by capacity. Merging costs a node little beside its records, so what it merges already counts
before what it reads: queries that are placed together do not all choose the same node.
"""

from collections import Counter
from collections.abc import Sequence

from controlplane.models import Cluster, Node, Query
from controlplane.planning.online import OnlineProblem

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
