"""The changes of a batch on a node, and their cost."""

from dataclasses import dataclass, field
from typing import Any

from controlplane.wire.aggregates.state_schema import StateSchema
from controlplane.wire.results.blocks import Block
from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.engine.failures.fault import Fault


@dataclass
class BatchChanges:
    """The changes of a batch on a node: windows by state schema, and measures.

    `blocks`: windows that were complete immediately, each once for several queries. `dropped`:
    records by edge (stream, query); `tasks`: rows of query, task, records imported and bytes of
    state, of the tasks that were looked at; `state_us`: processor time of the state; `faults`: by
    query what of it could not be computed: nothing of it was taken then.
    """

    windows: list[tuple[str, StateSchema, Any]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)
    late: int = 0
    state_bytes: int = 0
    dropped: dict[tuple[int, int], int] = field(default_factory=dict)
    tasks: list[Int64s] = field(default_factory=list)
    state_us: int = 0
    faults: dict[int, Fault] = field(default_factory=dict)

    def take(self, other: "BatchChanges") -> None:
        """Add what another part of the batch changed after this."""
        self.windows += other.windows
        self.blocks += other.blocks
        self.ended |= other.ended
        self.late += other.late
        self.state_bytes = other.state_bytes
        for edge, lost in other.dropped.items():
            self.dropped[edge] = self.dropped.get(edge, 0) + lost
        self.tasks += other.tasks
        self.state_us += other.state_us
        self.faults |= other.faults
