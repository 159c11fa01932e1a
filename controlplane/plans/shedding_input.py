"""The input of the shedding planner in a snapshot: rates, queries with weights, measured costs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple, Self

# The p95 latency is about twice the duration of micro-batches: a record waits for the next batch,
# and for its results. The rest of the bound is for batches that take longer than others.
BATCHES_OF_LATENCY: Final = 2.5
# The objective of ladders that are max-min fair over queries.
FAIR: Final = "fair"
# The usable share of the time of a node if no micro-batch was measured.
ASSUMED_USABLE: Final = 0.9


class SheddingStream(NamedTuple):
    """A stream that a running query reads: records/s after its static drop rule, its split node.

    `rate`: None if it is neither measured nor declared.
    """

    id: int
    name: str
    rate: float | None
    split: int


class SheddingQuery(NamedTuple):
    """A running query; its tasks and aggregator nodes are in the snapshot.

    `streams`: ids, `right`: those of the right side of a join. `window_ms`, `slide_ms`: of its
    windows. `routing`: equal for queries that assign records to tasks in the same way. `shared`:
    the id of the first query with the same streams, text, tasks and key grouping: a node computes
    both once.
    """

    id: int
    weight: float
    floor: float
    streams: Sequence[int]
    right: Sequence[int]
    window_ms: int
    slide_ms: int
    routing: str
    shared: int


class CostSource(StrEnum):
    """How the time of a node per record is known, the best first.

    SLOPE: the growth of the time of batches with their records; BUSY: the time over the records
    while the node is busy and the records of batches do not differ; POOLED: the slopes of all nodes
    of its capacity; OTHERS: the median of the other nodes. ASSUMED: all nodes need the same time,
    at most the least quotient of time and records.
    """

    EMULATED = "emulated"
    SLOPE = "slope"
    BUSY = "busy"
    POOLED = "pooled"
    OTHERS = "others"
    ASSUMED = "assumed"


class NodeSeconds(NamedTuple):
    """A node's seconds per delivered record, None: not measured; 1 / capacity if emulated.

    `fixed_s`: its seconds per micro-batch, which `seconds` excludes; `slope`, `error`: of its time
    over its records, and the standard error, also if it is not sure; `quotient`: its time over its
    records, an upper bound. `capacity`: the declared one, equal for nodes of a kind.
    """

    node: int
    name: str
    seconds: float | None
    emulated: bool
    source: CostSource | None = None
    fixed_s: float = 0.0
    slope: float | None = None
    error: float | None = None
    quotient: float | None = None
    capacity: float = 0.0


class BatchSeconds(NamedTuple):
    """The time of micro-batches: outside of their longest node, and growth per time of that node.

    `growth` is at least 1: the time of a batch grows by so much per time of the node. `usual_s`:
    the median duration.
    """

    outside_s: float
    growth: float
    usual_s: float = 0.0

    def usable(self, fixed_s: float, batch_s: float) -> float:
        """Return the share of a batch of `batch_s` that a node with a fixed time has for records.

        Batches take at least twice the time of one without records, as shorter ones are impossible.
        """
        empty = self.outside_s + self.growth * fixed_s
        length = max(batch_s, 2 * empty)
        return (length - empty) / (self.growth * length)


@dataclass(frozen=True)
class SheddingSettings:
    """The settings of ladders in a policy.

    `limit`: the largest load of a resource, of its usable time; `hold_s`: the position falls after
    the input allowed it for so long; `drain_s`: a backlog is to be worked off within it, 0: it
    follows from `latency_s`, the bound of the p95 latency. `max_factor`: the input factor of the
    last rung; `rungs`: their largest number. `windows`: "auto" drops whole short windows where it
    can, "random" drops records always. `objective`: "value" keeps the most weighted results, "fair"
    the largest least kept part of a query over its weight.
    """

    limit: float = 1.0
    hold_s: float = 5.0
    drain_s: float = 0.0
    max_factor: float = 4.0
    rungs: int = 8
    windows: str = "auto"
    objective: str = "value"
    latency_s: float = 10.0

    @classmethod
    def of_policy(cls, stored: Mapping[str, Any]) -> "SheddingSettings":
        """Return the settings of a policy's stored ones, whose names begin with `shedding_`.

        `latency_s` is the limit of the p95 latency of the whole policy.
        """
        names = {field.name: f"shedding_{field.name}" for field in fields(cls)}
        given = {name: stored[key] for name, key in names.items() if key in stored}
        if "latency_ms" in stored:
            given["latency_s"] = stored["latency_ms"] / 1000
        return cls(**given)

    @property
    def batch_s(self) -> float:
        """Return the longest micro-batches with which the p95 latency is within its bound."""
        return self.latency_s / BATCHES_OF_LATENCY

    @property
    def backlog_s(self) -> float:
        """Return the time within which a backlog is to be worked off.

        By default two micro-batches: the pipeline counts as a backlog what arrives in more than
        half of this time, which is one batch of the longest duration.
        """
        return self.drain_s or 2 * self.batch_s


@dataclass(frozen=True)
class SheddingInput:
    """What is known of the work of a cluster.

    `split_seconds`: of a split node per record, None: not measured, so it is no bottleneck.
    `merge_s`: seconds of an aggregator node per partial result; `partials_per_record`: partial
    results per record of a query with an aggregator node; None: not measured. `batch`: the time of
    micro-batches, None: not measured. `split_measured`: whether `split_seconds` is measured, not
    declared.
    """

    name: ClassVar[str] = "shedding"
    streams: Sequence[SheddingStream]
    queries: Sequence[SheddingQuery]
    nodes: Sequence[NodeSeconds]
    split_seconds: float | None = None
    merge_s: float | None = None
    partials_per_record: float | None = None
    settings: SheddingSettings = SheddingSettings()
    batch: BatchSeconds | None = None
    split_measured: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        return asdict(self) | {
            "streams": self.streams, "queries": self.queries, "nodes": self.nodes,
            "batch": self.batch,
        }  # fmt: skip

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the input that `to_json` wrote."""
        return cls(
            [SheddingStream(*stream) for stream in row["streams"]],
            [SheddingQuery(*query) for query in row["queries"]],
            [_node(*node) for node in row["nodes"]],
            row["split_seconds"],
            row["merge_s"],
            row["partials_per_record"],
            SheddingSettings(**row["settings"]),
            None if row["batch"] is None else BatchSeconds(*row["batch"]),
            row["split_measured"],
        )

    def usable(self, fixed_s: float = 0.0) -> float:
        """Return the share of its time that a resource that is not emulated has for records.

        `fixed_s`: what a node needs per micro-batch, as far as its cost per record excludes it.
        """
        if self.batch is None:
            return ASSUMED_USABLE
        return self.batch.usable(fixed_s, self.settings.batch_s)

    @property
    def rates(self) -> dict[int, float]:
        """Return the records/s of each stream by id, 0 if it is unknown."""
        return {stream.id: stream.rate or 0.0 for stream in self.streams}


def _node(*columns: Any) -> NodeSeconds:
    node = NodeSeconds(*columns)
    return node._replace(source=None if node.source is None else CostSource(node.source))
