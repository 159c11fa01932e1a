"""Measurements for the ladder when a batch is planned: arrivals, backlogs and event times."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from controlplane.wire.log.queued import appended_records
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.routing.compiled_ladder import CompiledLadder, Floats
from workers.pipeline.reports.telemetry_row import newest_telemetry
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.routing.key_grouping import NodeLoads
from workers.pipeline.shedding.arrivals import AppendedCounts, ArrivalMeter, MixedTotals, Rates
from workers.pipeline.shedding.choice import (
    BatchMeasures,
    LadderState,
    cost_factor,
    next_ladder_state,
)
from workers.pipeline.shedding.window_steps import EventTimes
from workers.pipeline.sources.cluster_sources import ClusterSources
from workers.pipeline.sources.cut import Cut
from workers.pipeline.sources.lag import SourceArrivals
from workers.pipeline.split_nodes.batch_size import RECENT_BATCHES

_NOTHING = AppendedCounts(np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class PlannedBatch:
    """What is known of the batches before and after a planning.

    `batch`: the number of the batch before, which ends at `start`; `former`: its ladder, `before`:
    its state. `table`: of the next batch, which ends at `end`; `nodes`: what waits at the nodes.
    `clock_ms`: when the batch before was planned. `arrivals`: of streams with sources.
    """

    batch: int
    start: Cut
    end: Cut
    before: LadderState | None
    former: CompiledLadder | None
    table: CompiledTable
    nodes: NodeLoads
    clock_ms: int
    now_ms: int
    arrivals: Mapping[int, SourceArrivals]


@dataclass
class LadderPlanner:
    """Chooses the state of the ladder for each batch."""

    sources: ClusterSources
    _meter: ArrivalMeter = field(default_factory=ArrivalMeter)
    _totals: MixedTotals = field(default_factory=MixedTotals)

    def next_state(self, planned: PlannedBatch) -> LadderState | None:
        """Return the state for the next batch, None if there is none."""
        ladder = planned.table.ladder
        if ladder is None and planned.before is None:
            return None
        rows = newest_telemetry(self.sources.client, self.sources.cluster, RECENT_BATCHES)
        appended = _NOTHING if ladder is None else self._appended(planned, ladder, rows)
        measured = BatchMeasures(
            appended,
            self._rates(ladder, appended.total, planned.now_ms),
            planned.nodes,
            planned.table.table.capacities,
            self._event_times(planned, rows[0] if rows else {}),
            planned.now_ms,
            planned.now_ms - planned.clock_ms,
            self._cost_factor(ladder, planned, rows),
        )
        return next_ladder_state(planned.before, planned.former, ladder, measured)

    def _rates(self, ladder: CompiledLadder | None, total: Floats, now_ms: int) -> Rates | None:
        if ladder is None:
            return None

        def loads_of(rates: Floats) -> Floats:
            return np.asarray(ladder.loads(rates)[:, 0])

        return self._meter.rates(ladder.streams, total, now_ms, loads_of)

    def _cost_factor(
        self, ladder: CompiledLadder | None, planned: PlannedBatch, rows: list[dict[str, Any]]
    ) -> float:
        if ladder is None or not ladder.ladder.is_provisional:
            return 1.0
        return cost_factor(ladder, rows, planned.table.table.capacities)

    def _appended(
        self, planned: PlannedBatch, ladder: CompiledLadder, rows: list[dict[str, Any]]
    ) -> AppendedCounts:
        log = self.sources.log
        start, end = planned.start.log, planned.end.log
        if not isinstance(log, RedisLog):
            total = end.total + log.records_after(start, end)
            unread = max(0, total - start.total)
            return self._totals.appended(ladder.streams, total, unread, _records_read(rows))
        starts = {stream: start.of(stream) for stream in ladder.streams}
        counts = appended_records(log.client, log.cluster, starts)
        counts |= {s: (t.total, t.unread) for s, t in planned.arrivals.items() if s in counts}
        pairs = np.array([counts[stream] for stream in ladder.streams], np.float64)
        columns = pairs.reshape(-1, 2)
        return AppendedCounts(columns[:, 0], columns[:, 1])

    def _event_times(self, planned: PlannedBatch, row: Mapping[str, Any]) -> EventTimes:
        """Return the newest event times that were read, of the streams with window drops.

        The newest one in the log, which is not earlier, where batches before are not known.
        """
        state = planned.before or LadderState()
        ladder = planned.table.ladder
        edges = {*state.windows, *(() if ladder is None else ladder.windows)}
        if not edges:
            return EventTimes({}, {})
        streams = sorted({stream for stream, _ in edges})
        newest: dict[int, int] = {}
        if row.get("batch") == planned.batch:
            read = row.get("newest", {})
            newest = {s: max(ms, read.get(str(s), ms)) for s, ms in state.newest.items()}
        newest |= {s: t.newest_ms for s, t in planned.arrivals.items() if t.newest_ms is not None}
        missing = [stream for stream in streams if stream not in newest]
        if missing:
            newest |= self.sources.log.head(missing).newest
        newest = {stream: newest[stream] for stream in streams if stream in newest}
        lateness = planned.table.lateness_ms
        is_processed = not row.get("waiting", 0) and not planned.start.log.delayed
        return EventTimes(newest, {edge: lateness.get(edge, 0) for edge in edges}, is_processed)


def _records_read(rows: list[dict[str, Any]]) -> dict[int, int]:
    """Return the records of each stream that recent batches read."""
    result: dict[int, int] = {}
    for row in rows:
        for stream, records in row.get("streams", {}).items():
            result[int(stream)] = result.get(int(stream), 0) + records
    return result
