"""Which node merges a query's windows: of those that merge least, the one with the least traffic.

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
    merged = Query.objects.filter(aggregator__in=nodes, state__in=ROUTED)
    return list(merged.order_by("name").values_list("name", flat=True))
