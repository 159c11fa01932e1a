"""The input of the shedding planner in a snapshot: rates, queries with weights, measured costs."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Self


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


class NodeSeconds(NamedTuple):
    """A node's seconds per delivered record, None: not measured; 1 / capacity if emulated."""

    node: int
    name: str
    seconds: float | None
    emulated: bool


@dataclass(frozen=True)
class SheddingSettings:
    """The settings of ladders in a policy.

    `limit`: the largest load of a resource; `hold_s`: the position falls after the input allowed it
    for so long; `drain_s`: a backlog is to be worked off within it. `max_factor`: the input factor
    of the last rung; `rungs`: their largest number. `windows`: "auto" drops whole short windows
    where it can, "random" drops records always.
    """

    limit: float = 0.9
    hold_s: float = 30.0
    drain_s: float = 5.0
    max_factor: float = 4.0
    rungs: int = 8
    windows: str = "auto"

    @classmethod
    def of_policy(cls, stored: Mapping[str, Any]) -> "SheddingSettings":
        """Return the settings of a policy's stored ones, whose names begin with `shedding_`."""
        names = {field.name: f"shedding_{field.name}" for field in fields(cls)}
        return cls(**{name: stored[key] for name, key in names.items() if key in stored})


@dataclass(frozen=True)
class SheddingInput:
    """What is known of the work of a cluster.

    `split_seconds`: of a split node per record, None: not measured, so it is no bottleneck.
    `merge_s`: seconds of an aggregator node per partial result; `partials_per_record`: partial
    results per record of a query with an aggregator node; None: not measured.
    """

    streams: Sequence[SheddingStream]
    queries: Sequence[SheddingQuery]
    nodes: Sequence[NodeSeconds]
    split_seconds: float | None = None
    merge_s: float | None = None
    partials_per_record: float | None = None
    settings: SheddingSettings = SheddingSettings()

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        return asdict(self) | {
            "streams": self.streams, "queries": self.queries, "nodes": self.nodes,
        }  # fmt: skip

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the input that `to_json` wrote."""
        return cls(
            [SheddingStream(*stream) for stream in row["streams"]],
            [SheddingQuery(*query) for query in row["queries"]],
            [NodeSeconds(*node) for node in row["nodes"]],
            row["split_seconds"],
            row["merge_s"],
            row["partials_per_record"],
            SheddingSettings(**row["settings"]),
        )

    @property
    def rates(self) -> dict[int, float]:
        """Return the records/s of each stream by id, 0 if it is unknown."""
        return {stream.id: stream.rate or 0.0 for stream in self.streams}
