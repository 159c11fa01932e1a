"""The offset of the one streaming query: where in the log, and under which routing version.

The control plane travels in the offset. Spark writes it to its log before a batch runs, so a
batch that is replayed after a crash reads the same records under the same routing table, with the
same clock and the same signals, and writes the same rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from controlplane.wire.topics.cut import SourceCut
from workers.pipeline.sources.cut import Cut, LogCut
from workers.pipeline.split_nodes.grouping_states import StoredState, StoredStates


@dataclass(frozen=True, slots=True)
class Offset:
    """The end of a batch.

    `batch`: a number that outlives the checkpoint; `position`, `total`: position in the log;
    `version`: routing version. `export_version`: the version from which tasks export their state in
    this batch, for import in the next one; None without. `clock_ms`: when the batch was planned, 0
    for never. `merge_pending`: partial results of this batch still have to be merged.
    `has_backlog`: a node had a backlog when the batch was planned. `restored`: the loss of Redis
    (`wire.generation`) after which the rows of open windows were written again. `delayed`,
    `credit`: of the log's cut (`sources.cut.LogCut`). `groupings`: states of key groupings
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
    def cut(self) -> Cut:
        """Return how far the log and the sources of streams are read."""
        delayed = {int(stream): position for stream, position in self.delayed.items()}
        credit = {int(split): records for split, records in self.credit.items()}
        sources = {int(stream): SourceCut.from_json(row) for stream, row in self.sources.items()}
        return Cut(LogCut(self.position, self.total, delayed, credit), sources)

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
        log = inputs.cut.log
        moved = bool(self.delayed) or inputs.has_backlog or inputs.cut != self.cut
        following = replace(
            self,
            batch=self.batch + 1,
            position=log.position,
            total=log.total,
            export_version=None,
            clock_ms=max(inputs.now_ms, self.clock_ms),
            merge_pending=inputs.has_aggregators,
            has_backlog=inputs.has_backlog,
            groupings={},
            restored=inputs.restored,
            delayed={str(stream): place for stream, place in log.delayed.items()},
            credit={str(split): records for split, records in log.credit.items()},
            ladder=inputs.ladder,
            faults={str(node): delay for node, delay in inputs.faults.items()},
            sources={str(stream): cut.to_json() for stream, cut in inputs.cut.sources.items()},
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

    `cut`: at the end of the batch; `version`: the newest routing; `export_version`: the version
    before, if tasks export their state; `has_backlog`: a node has a backlog; `has_aggregators`: the
    table has an aggregator node; `restored`: the newest loss of Redis; `ladder`: the state for the
    batch; `faults`: delay by node.
    """

    cut: Cut
    version: int
    now_ms: int
    export_version: int | None = None
    has_backlog: bool = False
    has_aggregators: bool = False
    restored: int = 0
    ladder: Mapping[str, Any] | None = None
    faults: Mapping[int, int] = field(default_factory=dict)
