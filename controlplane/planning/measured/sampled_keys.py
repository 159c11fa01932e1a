"""The input of the partitioning planner in a snapshot: the keys of queries, costs of merging."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from controlplane.formats.json_values import JsonValue


class SampledQuery(NamedTuple):
    """The keys of a running query with several tasks and an aggregator node, which is not a join.

    `records_per_s`: of all its tasks; `window_s`: the length of its windows; `hashes`, `shares`:
    the most frequent keys, by their hash, and their shares of all records; `others`: the estimated
    number of the other keys, which have the rest of the records; `streams`: the ids of the streams
    that it reads.
    """

    id: int
    records_per_s: float
    window_s: float
    hashes: Sequence[int]
    shares: Sequence[float]
    others: int
    streams: Sequence[int] = ()


@dataclass(frozen=True)
class PartitioningInput(JsonValue):
    """What is known of the keys of a cluster.

    `queries`: with samples, by id. `interval_s`: seconds from one micro-batch to the next.
    `merge_s`: seconds that an aggregator node needs per partial result, None: not measured.
    """

    name: ClassVar[str] = "partitioning"
    queries: Sequence[SampledQuery]
    interval_s: float = 1.0
    merge_s: float | None = None

    def of(self, query: int) -> SampledQuery | None:
        """Return the keys of a query, None if it was not sampled."""
        return next((row for row in self.queries if row.id == query), None)

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        return dict(vars(self))
