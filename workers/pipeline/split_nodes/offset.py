"""The offset of the one streaming query: where in the log, and under which routing version.

The control plane travels in the offset. Spark writes it to its log before a batch runs, so a
batch that is replayed after a crash reads the same records under the same routing table, with the
same clock and the same signals, and writes the same rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from controlplane.wire.log.values import LogPosition, position_key
from controlplane.wire.topics.cut import SourceCut
from workers.pipeline.split_nodes.grouping_states import StoredState, StoredStates
from workers.pipeline.split_nodes.queues import NO_QUEUES, Queues


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch.

    `batch`: a number that outlives the checkpoint; `position`, `total`: position in the log;
    `version`: routing version. `export_version`: the version from which tasks export their state in
    this batch, for import in the next one; None without. `clock_ms`: when the batch was planned, 0
    for never. `merge_pending`: partial results of this batch still have to be merged.
    `has_backlog`: a node had a backlog when the batch was planned. `restored`: the loss of Redis
    (`wire.generation`) after which the rows of open windows were written again. `delayed`: the
    position up to which a stream is read, for streams that are read less far than `position`;
    `credit`: by split node (`queues.Queues`). `groupings`: states of key groupings
    (`grouping_states.StoredState`), by query. `ladder`: the state of the ladder of drop rules
    (`shedding.choice.LadderState`), None without. `faults`: delay by node (`wire.node_faults`).
    `sources`: how far the sources are read (`wire.topics.cut.SourceCut`), by stream.
    """

    batch: int
    position: str
    total: int
    version: int
    export_version: int | None = None
    clock_ms: int = 0
    merge_pending: bool = False
    has_backlog: bool = False
    restored: int = 0
    delayed: Mapping[str, str] = field(default_factory=dict)
    credit: Mapping[str, float] = field(default_factory=dict)
    groupings: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    ladder: Mapping[str, Any] | None = None
    faults: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, Any] = field(default_factory=dict)

    @property
    def states(self) -> StoredStates:
        """Return the states of key groupings from which the batch is routed."""
        return {int(query): StoredState(*row) for query, row in self.groupings.items()}

    def with_states(self, states: StoredStates) -> "Offset":
        """Return the offset with other states of key groupings."""
        return replace(self, groupings={str(q): list(state) for q, state in states.items()})

    @property
    def queues(self) -> Queues:
        """Return the queues of split nodes at the end of the batch."""
        return Queues(
            {int(stream): position for stream, position in self.delayed.items()},
            {int(split): records for split, records in self.credit.items()},
        )

    @property
    def cuts(self) -> dict[int, SourceCut]:
        """Return how far the sources are read, by stream."""
        return {int(stream): SourceCut.from_json(row) for stream, row in self.sources.items()}

    def records_since(self, before: "Offset") -> int:
        """Return how many records and messages lie between two offsets."""
        cuts = before.cuts
        read = sum(cut.records_since(cuts.get(stream)) for stream, cut in self.cuts.items())
        return self.total - before.total + read

    @property
    def needed_position(self) -> LogPosition:
        """Return the position of the log before which no stream has an unread record."""
        first = min((self.position, *self.delayed.values()), key=position_key)
        return LogPosition(first, self.total)

    @property
    def log_position(self) -> LogPosition:
        """Return the position in the log."""
        return LogPosition(self.position, self.total)

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark stores it."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Offset":
        """Return the offset that `to_json` wrote."""
        return cls(**row)

    def next(self, inputs: "BatchInputs") -> "Offset":
        """Return the offset at the end of the next batch; this one if no batch is needed.

        The very next batch imports exported state, under the same version.
        """
        moved = inputs.log_position.position != self.position or inputs.has_backlog
        moved = moved or bool(self.delayed) or inputs.cuts != self.cuts
        following = replace(
            self,
            batch=self.batch + 1,
            position=inputs.log_position.position,
            total=inputs.log_position.total,
            export_version=None,
            clock_ms=max(inputs.now_ms, self.clock_ms),
            merge_pending=inputs.has_aggregators,
            has_backlog=inputs.has_backlog,
            groupings={},
            restored=inputs.restored,
            delayed={str(stream): place for stream, place in inputs.queues.delayed.items()},
            credit={str(split): records for split, records in inputs.queues.credit.items()},
            ladder=inputs.ladder,
            faults={str(node): delay for node, delay in inputs.faults.items()},
            sources={str(stream): cut.to_json() for stream, cut in inputs.cuts.items()},
        )
        if self.export_version is not None:
            return following
        if moved or inputs.version != self.version:
            return replace(following, version=inputs.version, export_version=inputs.export_version)
        if inputs.restored != self.restored:
            return following
        # Partial results of the last batch are merged without new records.
        return replace(following, merge_pending=False) if self.merge_pending else self


@dataclass(frozen=True, slots=True)
class BatchInputs:
    """The inputs for the planning of a batch.

    `log_position`: the end of the batch in the log; `version`: the newest routing;
    `export_version`: the version before, if tasks export their state; `has_backlog`: a node has a
    backlog; `has_aggregators`: the table has an aggregator node; `restored`: the newest loss of
    Redis; `queues`: of split nodes at the end of the batch; `ladder`: the state for the batch;
    `faults`: delay by node; `cuts`: of sources at the end of the batch, by stream.
    """

    log_position: LogPosition
    version: int
    now_ms: int
    export_version: int | None = None
    has_backlog: bool = False
    has_aggregators: bool = False
    restored: int = 0
    queues: Queues = NO_QUEUES
    ladder: Mapping[str, Any] | None = None
    faults: Mapping[int, int] = field(default_factory=dict)
    cuts: Mapping[int, SourceCut] = field(default_factory=dict)
