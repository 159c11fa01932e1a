"""The input of the shedding planner in a snapshot: rates, queries with weights, measured costs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple

from controlplane.formats.json_values import JsonValue
from controlplane.planning.measured.costs import BatchSeconds
from controlplane.plans.ladder_settings import SheddingSettings

# The objective of ladders that are max-min fair over queries.
FAIR: Final = "fair"
# The usable share of the time of a node if no micro-batch was measured.
ASSUMED_USABLE: Final = 0.9
# A cost that fewer nodes show may be that of one slow node: others are not estimated from it.
LEAST_NODES: Final = 2


class SheddingStream(NamedTuple):
    """A stream that a running query reads: records/s after its static drop rule, its split node.

    `rate`: None if it is neither measured nor declared. `shares`: if partitions of its source are
    read by several split nodes, the part of its records that each reads.
    """

    id: int
    name: str
    rate: float | None
    split: int
    shares: Sequence[tuple[int, float]] = ()


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
    that of the only measured node, or at most the least quotient of time and records.
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


@dataclass(frozen=True)
class SheddingInput(JsonValue):
    """What is known of the work of a cluster.

    `split_seconds`: of a split node per record, None: not measured, so it is not a bottleneck.
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
    settings: SheddingSettings = field(default_factory=SheddingSettings)
    batch: BatchSeconds | None = None
    split_measured: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        return vars(self) | {"settings": asdict(self.settings)}

    def usable(self, fixed_s: float = 0.0) -> float:
        """Return the share of its time that a resource that is not emulated has for records.

        `fixed_s`: what a node needs per micro-batch, as far as its cost per record excludes it.
        """
        if self.batch is None:
            return ASSUMED_USABLE
        return self.batch.usable(fixed_s, self.settings.batch_s)

    @property
    def has_costs(self) -> bool:
        """Return whether no cost has to be assumed: two nodes are measured, or all with records."""
        nodes = [node for node in self.nodes if not node.emulated and node.quotient is not None]
        measured = sum(node.seconds is not None for node in nodes)
        return measured >= min(len(nodes), LEAST_NODES) > 0

    @property
    def rates(self) -> dict[int, float]:
        """Return the records/s of each stream by id, 0 if it is unknown."""
        return {stream.id: stream.rate or 0.0 for stream in self.streams}
