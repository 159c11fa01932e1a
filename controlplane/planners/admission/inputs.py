"""The input of the admission planner in a snapshot: rates, characteristics and split nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import BeforeValidator

from controlplane.formats.json_values import JsonValue
from controlplane.wire.routing.split_assignment import SplitAssignment, SplitReading


class AdmittedStream(NamedTuple):
    """A stream of a cluster.

    `rates`: records/s of the past periods, oldest first, None: not known; `characteristics`: a
    `StreamMetadata` as JSON; `forecaster`: a `ForecasterChoice` as JSON. `parts`: of a source with
    several partitions, the part of its records that arrives in each.
    """

    id: int
    name: str
    rates: Sequence[float | None]
    characteristics: Mapping[str, Any]
    forecaster: Mapping[str, Any]
    parts: Sequence[tuple[int, float]] = ()


class AggregatedQuery(NamedTuple):
    """A running query with an aggregator node, and the ids of the streams that it reads."""

    id: int
    streams: Sequence[int]


@dataclass(frozen=True)
class MeasuredCosts(JsonValue):
    """Measured costs of queries on the nodes of a cluster, None: not measured.

    `operator_s`: seconds that a node needs per record; `merge_s`: seconds that an aggregator node
    needs per partial result; `partials_per_record`: partial results per record of the queries with
    an aggregator node.
    """

    operator_s: float | None = None
    merge_s: float | None = None
    partials_per_record: float | None = None


@dataclass(frozen=True)
class AdmissionInput(JsonValue):
    """What is known of the streams, split nodes and aggregated queries of a cluster.

    `seconds`: the length of the periods of the rates. `capacity`: records/s of each split node, 0:
    neither declared nor measured; `room`: the part of it that plans leave free. `latency`: moving
    averages of the latencies of queues by split node, in seconds. `interval_s`: seconds from one
    micro-batch to the next.
    """

    name: ClassVar[str] = "admission"
    seconds: int
    capacity: float
    latency: Annotated[Mapping[int, float], BeforeValidator(dict)]
    streams: Sequence[AdmittedStream]
    interval_s: float = 1.0
    costs: MeasuredCosts = MeasuredCosts()
    queries: Sequence[AggregatedQuery] = ()
    room: float = 0.0

    def reading(self, assignment: SplitAssignment) -> SplitReading:
        """Return which part of each stream the split nodes of an assignment read."""
        return SplitReading(assignment, {s.id: dict(s.parts) for s in self.streams if s.parts})

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        return vars(self) | {
            "latency": list(self.latency.items()), "costs": self.costs.to_json()
        }  # fmt: skip
