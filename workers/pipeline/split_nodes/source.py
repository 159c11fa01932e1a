"""The Spark source: the log of a cluster, read by its split nodes and routed while it is read.

One input partition per split node; each yields one row per node that carries an envelope. Which
records a batch holds, and under which routing table, is in the offsets alone.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from controlplane.wire import attempts, node_faults
from controlplane.wire.errors import RoutingMissing
from controlplane.wire.generation import read_generation
from controlplane.wire.limits import limit_memory
from controlplane.wire.routing.publication import latest_version, trim
from workers.pipeline.checkpoints.bootstrap import (
    first_batch,
    first_cuts,
    first_delays,
    first_position,
)
from workers.pipeline.exchange import task_states
from workers.pipeline.exchange.durability import check_batch, keep_letters
from workers.pipeline.exchange.envelope import ROUTED_DDL, BatchHeader, to_rows
from workers.pipeline.reports.activity import count_step
from workers.pipeline.reports.telemetry_row import (
    LoadFeedback,
    newest_telemetry,
    read_load_feedback,
)
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.routing.key_grouping import NodeLoads
from workers.pipeline.shedding.choice import LadderState, header_of, kept_of_streams
from workers.pipeline.shedding.drops import LadderDrops
from workers.pipeline.shedding.planning import LadderPlanner, PlannedBatch
from workers.pipeline.sources.cluster_sources import ClusterSources
from workers.pipeline.sources.cut import Cut
from workers.pipeline.spark.connections import client_of, freeze_heap, log_of, process_id, tables_of
from workers.pipeline.spark.partition_keys import node_keys
from workers.pipeline.split_nodes.batch_size import RECENT_BATCHES, BatchLoad, record_limit
from workers.pipeline.split_nodes.dispatch import REPORTING_NODE, dispatch, source_report
from workers.pipeline.split_nodes.grouping_states import (
    KeyRouter,
    StatePlan,
    StoredStates,
    read_reports,
)
from workers.pipeline.split_nodes.key_sampling import KeySampler
from workers.pipeline.split_nodes.offset import BatchInputs, Offset
from workers.pipeline.split_nodes.partition import SplitPartition, grouped, open_splits, parts_of
from workers.pipeline.split_nodes.projection import DeadLetterBuffer

logger = logging.getLogger("weir.pipeline")

# So many records may wait at nodes whose capacity is emulated; then the log has to wait.
MAX_BACKLOG: Final = 1_000_000


class WeirLog(DataSource):
    """The data source `weir_log`.

    Its option `reader` has the fields of `LogReader` as JSON.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name that `readStream.format` takes."""
        return "weir_log"

    def schema(self) -> str:
        """Return the columns of a routed row."""
        return ROUTED_DDL

    def streamReader(self, schema: StructType) -> "LogReader":  # noqa: N802 - Spark's name
        """Return the reader of one streaming query."""
        return LogReader(**json.loads(self.options["reader"]))


def clock_ms() -> int:
    """Return the time since the epoch in milliseconds."""
    return time.time_ns() // 1_000_000


@dataclass
class LogReader(DataSourceStreamReader):
    """Reads the log between two offsets; holds nothing that a replay would need.

    `nodes` holds for routing tables without their number; `budget`: bytes that a batch may deliver
    to nodes, and that nodes may emit; `seed`: where the checkpoint begins, as JSON, until its first
    batch is whole.
    """

    cluster: str
    redis_url: str
    state_partitions: int
    nodes: int
    splits: int
    max_records: int
    max_bytes: int
    budget: int
    log_url: str = ""
    seed: str = ""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the end of what an earlier checkpoint committed; a first batch always follows."""
        if self.seed:
            return Offset.from_json(json.loads(self.seed)).to_json()
        client = client_of(self.redis_url)
        log_position = first_position(client, self.cluster, self._sources().log)
        version = latest_version(client, self.cluster) or 0
        batch = first_batch(client, self.cluster)
        return Offset(
            batch, log_position.position, log_position.total, version, merge_pending=version > 0,
            restored=read_generation(client, self.cluster).restored,
            delayed=first_delays(client, self.cluster, log_position.position),
            sources=first_cuts(client, self.cluster),
        ).to_json()  # fmt: skip

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
        """Return where the next batch ends: the newest routing, and a bounded piece of the log."""
        client = client_of(self.redis_url)
        offset = Offset.from_json(start)
        check_batch(client, self.cluster, offset)
        version = tables_of(self.redis_url, self.cluster).newest_version(offset.version)
        export_version = None
        if version > offset.version and offset.export_version is None:
            export_version = self._export_version(offset.version, version)
        table = self._table(offset.version if offset.export_version is not None else version)
        faults = node_faults.active(client, self.cluster, clock_ms())
        feedback = LoadFeedback()
        # The batch after the last one with a fault takes the backlog of a lost node.
        if (table is not None and table.needs_feedback) or faults or offset.faults:
            feedback = read_load_feedback(client, self.cluster)
        before, now_ms, records = offset.cut, max(clock_ms(), offset.clock_ms), 0
        if feedback.waiting < MAX_BACKLOG:
            records = self._record_limit(offset.version, table)
        sources = self._sources()
        cut = sources.next_cut(before, offset.batch, table, now_ms, records, self.max_bytes)
        ladder = self._ladder_state(offset, before, cut, table, feedback.loads, now_ms)
        elapsed_ms = now_ms - offset.clock_ms if offset.clock_ms else None
        kept = {} if table is None else kept_of_streams(ladder, table)
        inputs = BatchInputs(
            sources.delayed(before, cut, table, elapsed_ms, self.max_records, kept),
            version,
            now_ms=now_ms,
            export_version=export_version,
            has_backlog=feedback.waiting > 0,
            has_aggregators=table is not None and table.has_aggregators,
            restored=read_generation(client, self.cluster).restored,
            ladder=None if ladder is None else ladder.to_json(),
            faults=faults,
        )
        following = offset.next(inputs)
        if following != offset:
            following = following.with_states(self._states(offset, following, feedback.loads))
        return following.to_json()

    def _states(self, offset: Offset, following: Offset, loads: NodeLoads) -> StoredStates:
        """Return the states of key groupings from which the next batch is routed."""
        table = self._batch_table(following)
        if table is None or not table.leaders:
            return {}
        reports = read_reports(client_of(self.redis_url), self.cluster)
        return StatePlan(
            offset.states,
            # Those of another batch do not continue the states of this offset.
            reports.states if reports.batch == offset.batch else {},
            self._batch_table(offset),
            table,
            loads,
            following.clock_ms,
        ).states()

    @cached_property
    def _ladder_planner(self) -> LadderPlanner:
        return LadderPlanner(self._sources())

    def _ladder_state(
        self,
        offset: Offset,
        start: Cut,
        end: Cut,
        table: CompiledTable | None,
        nodes: NodeLoads,
        now_ms: int,
    ) -> LadderState | None:
        """Return the state of the ladder for the next batch; as before without a table."""
        before = None if offset.ladder is None else LadderState.from_json(offset.ladder)
        if table is None or (before is None and table.ladder is None):
            return before
        known = self._batch_table(offset) if before is not None else None
        former = None if known is None else known.ladder
        return self._ladder_planner.next_state(
            PlannedBatch(
                offset.batch, start, end, before, former, table, nodes, offset.clock_ms, now_ms,
                self._sources().arrivals(start),
            )
        )  # fmt: skip

    def _record_limit(self, before: int, table: CompiledTable | None) -> int:
        """Return the record limit of the next batch; `before`: the last batch's routing version."""
        rows = newest_telemetry(client_of(self.redis_url), self.cluster, RECENT_BATCHES)
        loads, old, more = [BatchLoad.of(row) for row in reversed(rows)], self._table(before), 1.0
        if old is not None and table is not None:
            more = len(table.table.queries) / max(1, len(old.table.queries))
        return record_limit(loads, self.budget, self.max_records, more)

    def _sources(self) -> ClusterSources:
        log = log_of(self.log_url, self.redis_url, self.cluster)
        return ClusterSources(self.cluster, client_of(self.redis_url), log)

    def _table(self, version: int, export_version: int | None = None) -> CompiledTable | None:
        """Return a routing table (of the batch that leads to it), None if Redis has lost it."""
        try:
            return tables_of(self.redis_url, self.cluster).of_batch(export_version, version)
        except RoutingMissing:
            return None

    def _batch_table(self, offset: Offset) -> CompiledTable | None:
        """Return the routing table of the batch that ends at an offset, None if it is lost."""
        return self._table(offset.version, offset.export_version)

    def _export_version(self, before: int, version: int) -> int | None:
        """Return the version before where tasks export their state from it, else None."""
        try:
            moved = tables_of(self.redis_url, self.cluster).task_transfers(before, version)
        except RoutingMissing:
            # Redis was emptied and has only the present table: it is unknown who had what.
            logger.warning("routing %s is gone: tasks that moved since start again", before)
            return None
        return before if moved else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one partition per open split node, or one for all of a light batch."""
        begin, stop = Offset.from_json(start), Offset.from_json(end)
        if begin == stop:
            return []
        clock = stop.clock_ms, stop.clock_ms - begin.clock_ms if begin.clock_ms else None
        plan = stop.batch, stop.version, stop.export_version, begin.export_version
        nodes = self._nodes_in(stop.version, stop.export_version, begin.export_version)
        records = stop.cut.records_since(begin.cut)
        attempt, skipped = self._attempt(begin, stop, records)
        table, cut = self._batch_table(stop), stop.cut
        splits = open_splits(table, self.splits, cut.sources)
        ranges = self._sources().ranges(begin.cut, cut, table, splits, stop.clock_ms,
                                        is_skipped=skipped, attempt=attempt)  # fmt: skip
        parts = [
            SplitPartition(
                BatchHeader(
                    *plan, *clock, stop.has_backlog, split, nodes,
                    stop.restored != begin.restored, attempt, cut.active, header_of(stop.ladder),
                    stop.faults,
                ),
                ranges[split], stop.states,
            )
            for split in splits
        ]  # fmt: skip
        return grouped(parts, records)

    def _attempt(self, begin: Offset, stop: Offset, records: int) -> tuple[int, bool]:
        """Count an attempt at a batch; return how many there were, and whether it is skipped."""
        client = client_of(self.redis_url)
        # A batch that runs again is not planned again.
        check_batch(client, self.cluster, begin)
        plan = attempts.BatchAttempt(
            stop.batch, 0, begin.position, stop.position, records, stop.version,
            -1 if stop.export_version is None else stop.export_version,
            -1 if begin.export_version is None else begin.export_version,
        )  # fmt: skip
        count = attempts.begin(client, self.cluster, plan, process_id())
        skipped = attempts.is_skipped(client, self.cluster, stop.batch)
        if skipped:
            logger.warning("batch %s is skipped: %s records are lost", stop.batch, plan.records)
        return count, skipped

    def _nodes_in(self, *versions: int | None) -> int:
        """Return how many nodes take part in a batch that exports state between versions.

        A node that a version removes emits its tasks' state in the batch that leads there, and
        what it has emitted is merged in the next one.
        """
        return max(self._nodes_at(version) for version in versions if version is not None)

    def _nodes_at(self, version: int) -> int:
        """Return the number of nodes at a version; the driver's if the table has none."""
        table = self._table(version)
        if table is None:
            return self.nodes
        return table.nodes if table.table.node_count else max(table.nodes, self.nodes)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield one row per split node and node: the envelope of what the split node has read."""
        limit_memory()
        yield from map(self._read_split, parts_of(partition))

    def _read_split(self, partition: SplitPartition) -> pa.RecordBatch:
        """Return one row per node: its envelope of what this split node has read."""
        header, started = partition.header.of_task(), time.perf_counter()
        versions = header.export_version, header.version
        table = tables_of(self.redis_url, self.cluster).of_batch(*versions)
        drops, dead = LadderDrops.of(header.ladder, table.ladder), DeadLetterBuffer()
        entries, read = self._sources().read(
            partition.ranges, header.split, table, drops, header.clock_ms, dead
        )
        source = {
            **read,
            **source_report(header.split, entries, table),
            "read_ms": clock_ms(),
            "clock_ms": header.clock_ms,
            "elapsed_ms": header.elapsed_ms,
            "capacity": table.table.split_capacity if table.table.split_emulated else None,
            **({} if header.ladder is None else {"ladder": header.ladder[:2]}),
        }
        probe_first = header.attempt > attempts.FAILURES
        router = KeyRouter(table, partition.states)
        result = dispatch(
            entries, table, header.nodes, source, router, KeySampler.of(header, table),
            drops, dead, probe_first=probe_first,
        )  # fmt: skip
        # The report of a split node is in its first envelope for this node.
        report = result.envelopes[REPORTING_NODE][0].source
        report["busy_ms"] = round((time.perf_counter() - started) * 1000, 2)
        client = client_of(self.redis_url)
        keep_letters(client, self.cluster, header, result.dead)
        freeze_heap()
        count_step(client, self.cluster)
        return to_rows(partition.header, node_keys(self.state_partitions), result.envelopes)

    def commit(self, end: dict[str, Any]) -> None:
        """Release the log, routing and states that no replay needs."""
        offset = Offset.from_json(end)
        self._sources().commit(offset.cut)
        client = client_of(self.redis_url)
        trim(client, self.cluster, offset.version)
        task_states.forget(client, self.cluster, offset.batch)
