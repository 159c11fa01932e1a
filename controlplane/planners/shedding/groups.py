"""Groups of queries that nodes compute once, with the part of the records of each node."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.planners.shedding.inputs import SheddingInput, SheddingQuery
from controlplane.planning.measured.key_loads import owners_of
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.route import NO_AGGREGATOR

# (Node index, part of a query's records) in the order of the nodes.
Shares = tuple[tuple[int, float], ...]
# Decimals of a part of a query's records.
_DECIMALS: Final = 9


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
    def fair_weight(self) -> float:
        """Return the weight of the part that is kept: the query of the largest one has the least.

        Queries keep the same part, and each over its own weight counts.
        """
        return max(query.weight for query in self.queries)

    @property
    def floor(self) -> float:
        """Return the least part of its records that is kept."""
        return max(query.floor for query in self.queries)


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
