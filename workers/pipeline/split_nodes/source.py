"""The Spark source: the log of a cluster, read by its split nodes and routed while it is read.

One input partition per split node; each yields one row per node that carries an envelope. Which
records a batch holds, and under which routing table, is in the offsets alone.
"""

import json
import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from controlplane.wire import attempts, dead_letters
from controlplane.wire.errors import RoutingMissing
from controlplane.wire.generation import read_generation
from controlplane.wire.limits import limit_memory
from controlplane.wire.log import Log
from controlplane.wire.routing.publication import latest_version, trim
from workers.pipeline.checkpoints.batch_sequence import first_batch, first_cut
from workers.pipeline.exchange import task_states
from workers.pipeline.exchange.messages import ROUTED_DDL, Head, routed
from workers.pipeline.reports.activity import count_step
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.routing.key_grouping import Signals
from workers.pipeline.spark.connections import client_of, log_of, settle, tables_of
from workers.pipeline.spark.partition_keys import node_keys
from workers.pipeline.split_nodes.batch_limits import records_within
from workers.pipeline.split_nodes.dispatch import route, source_report
from workers.pipeline.split_nodes.load_feedback import Heard, last_heard, recent_loads
from workers.pipeline.split_nodes.offset import News, Offset

logger = logging.getLogger("weir.pipeline")

# So many records may wait at nodes whose capacity is emulated; then the log has to wait.
MOST_WAITING: Final = 1_000_000
# This process: a driver that plans a batch again has not failed in between.
_DRIVER: Final = uuid.uuid4().hex


class WeirLog(DataSource):
    """The data source `weir_log`.

    Options: cluster, redis_url, partitions, nodes, splits, max_records, max_bytes, budget
    (bytes that a batch may deliver to nodes, and that nodes may emit), and log_url where that is
    elsewhere. `nodes` holds for routing tables that do not say how many there are.
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
        return LogReader(
            cluster=self.options["cluster"],
            redis_url=self.options["redis_url"],
            state_partitions=int(self.options["partitions"]),
            nodes=int(self.options["nodes"]),
            splits=int(self.options["splits"]),
            max_records=int(self.options["max_records"]),
            max_bytes=int(self.options["max_bytes"]),
            budget=int(self.options["budget"]),
            log_url=self.options.get("log_url", ""),
            seed=self.options.get("seed", ""),
        )


@dataclass
class SplitPartition(InputPartition):
    """What one split node reads in one batch, and what it tells the nodes."""

    head: Head
    start: str
    end: str
    signals: Signals
    skipped: bool = False


@dataclass
class LogReader(DataSourceStreamReader):
    """Reads the log between two offsets; holds nothing that a replay would need."""

    cluster: str
    redis_url: str
    state_partitions: int
    nodes: int
    splits: int
    max_records: int
    max_bytes: int
    budget: int
    log_url: str = ""
    # Where a checkpoint begins that was made from another one, as JSON.
    seed: str = ""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return where a new checkpoint starts: behind what an earlier one committed."""
        if self.seed:
            return Offset.from_json(json.loads(self.seed)).to_json()
        client = client_of(self.redis_url)
        cut = first_cut(client, self.cluster, self._log())
        version = latest_version(client, self.cluster) or 0
        batch = first_batch(client, self.cluster)
        restored = read_generation(client, self.cluster).restored
        return Offset(batch, cut.position, cut.total, version, restored=restored).to_json()

    def latestOffset(self, start: dict[str, Any], limit: object) -> dict[str, Any]:  # noqa: N802
        """Return where the next batch ends: the newest routing, and a bounded piece of the log."""
        client = client_of(self.redis_url)
        offset = Offset.from_json(start)
        version = max(latest_version(client, self.cluster) or 0, offset.version)
        before = None
        if version > offset.version and offset.before is None:
            before = self._left(offset.version, version)
        table = self._table(offset.version if offset.before is not None else version)
        heard = Heard()
        if table is not None and (table.reacts or table.merges or table.table.capacities):
            heard = last_heard(client, self.cluster)
        cut = offset.cut
        if heard.waiting < MOST_WAITING:
            records = self._most_records(offset.version, table)
            cut = self._log().cut_after(offset.cut, records, self.max_bytes)
        news = News(
            cut,
            version,
            now_ms=time.time_ns() // 1_000_000,
            before=before,
            waits=heard.waiting > 0,
            merges=table is not None and table.merges,
            signals=heard.signals if table is not None and table.reacts else {},
            restored=read_generation(client, self.cluster).restored,
        )
        return offset.next(news).to_json()

    def _most_records(self, before: int, table: CompiledTable | None) -> int:
        """Return how many records the next batch may have; `before`: the last batch's version."""
        loads = recent_loads(client_of(self.redis_url), self.cluster)
        old = self._table(before)
        more = 1.0
        if old is not None and table is not None:
            more = len(table.table.queries) / max(1, len(old.table.queries))
        return records_within(loads, self.budget, self.max_records, more)

    def _log(self) -> Log:
        return log_of(self.log_url, self.redis_url, self.cluster)

    def _table(self, version: int) -> CompiledTable | None:
        """Return the routing table, None where Redis has lost it."""
        try:
            return tables_of(self.redis_url, self.cluster).at(version)
        except RoutingMissing:
            return None

    def _left(self, before: int, version: int) -> int | None:
        """Return the version before where tasks hand their state on from it, else None."""
        try:
            moved = tables_of(self.redis_url, self.cluster).transfers(before, version)
        except RoutingMissing:
            # Redis was emptied and has only the present table: nobody knows who had what.
            logger.warning("routing %s is gone: tasks that moved since begin anew", before)
            return None
        return before if moved else None

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one partition per split node."""
        begin, stop = Offset.from_json(start), Offset.from_json(end)
        if begin == stop:
            return []
        elapsed = stop.clock_ms - begin.clock_ms if begin.clock_ms else None
        clock = stop.clock_ms, elapsed
        plan = stop.batch, stop.version, stop.before, begin.before
        nodes = self._nodes_in(stop.version, stop.before, begin.before)
        again = stop.restored != begin.restored
        attempt, skipped = self._attempt(begin, stop)
        first = stop.position if skipped else begin.position
        return [
            SplitPartition(
                Head(*plan, *clock, stop.waits, split, nodes, again, attempt), first,
                stop.position, stop.heard(), skipped,
            )
            for split in range(self._splits_at(stop.version))
        ]  # fmt: skip

    def _attempt(self, begin: Offset, stop: Offset) -> tuple[int, bool]:
        """Count an attempt at a batch; return how many there were, and whether it is skipped."""
        client = client_of(self.redis_url)
        plan = attempts.Attempt(
            stop.batch, 0, begin.position, stop.position, stop.total - begin.total, stop.version,
            -1 if stop.before is None else stop.before,
            -1 if begin.before is None else begin.before,
        )  # fmt: skip
        count = attempts.begin(client, self.cluster, plan, _DRIVER)
        skipped = attempts.is_skipped(client, self.cluster, stop.batch)
        if skipped:
            logger.warning("batch %s is skipped: %s records are lost", stop.batch, plan.records)
        return count, skipped

    def _nodes_in(self, *versions: int | None) -> int:
        """Return how many nodes take part in a batch that hands state on between versions.

        A node that a version removes gives out its tasks' state in the batch that leads there, and
        what it has given out is merged in the next one.
        """
        return max(self._nodes_at(version) for version in versions if version is not None)

    def _nodes_at(self, version: int) -> int:
        """Return the number of nodes at a version; the driver's where the table does not say it."""
        table = self._table(version)
        if table is None:
            return self.nodes
        return table.nodes if table.table.node_count else max(table.nodes, self.nodes)

    def _splits_at(self, version: int) -> int:
        """Return how many split nodes there are: as the table says, and all that read a stream.

        One that a plan has left without a stream reads nothing.
        """
        table = self._table(version)
        if table is None:
            return self.splits
        named = table.table.splits.values()
        return max(table.table.split_count or self.splits, 1 + max(named, default=0))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield one row per node: its envelope of what this split node has read."""
        assert isinstance(partition, SplitPartition)
        limit_memory()
        head = partition.head
        table = tables_of(self.redis_url, self.cluster).of_batch(head.leaving, head.version)
        streams = table.streams_of_split(head.split)
        entries = self._log().read_streams(streams, partition.start, partition.end)
        source = {
            "start": partition.start,
            "end": partition.end,
            **source_report(head.split, entries, table),
            "behind": self._log().behind(streams, partition.end),
            "clock_ms": head.clock_ms,
            **({"skipped": True} if partition.skipped else {}),
        }
        careful = head.attempt > attempts.FAILURES
        found = route(entries, table, head.nodes, source, partition.signals, careful=careful)
        dead_letters.keep(client_of(self.redis_url), self.cluster, found.dead.letters)
        settle()
        count_step(client_of(self.redis_url), self.cluster)
        yield routed(head, node_keys(self.state_partitions), found.envelopes)

    def commit(self, end: dict[str, Any]) -> None:
        """Give back the log that no replay can ask for any more."""
        offset = Offset.from_json(end)
        self._log().mark_committed(offset.cut)
        client = client_of(self.redis_url)
        trim(client, self.cluster, offset.version)
        task_states.forget(client, self.cluster, offset.batch)
