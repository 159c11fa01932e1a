"""What a node changed in a batch, written as the sink does it."""

from collections.abc import Collection, Mapping

import redis

from controlplane.wire.results.database import ResultsDatabase
from controlplane.wire.results.finalized import ResultQuery
from controlplane.wire.results.writer import WindowWriter
from tests.support.whole_results import results_database
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.exchange.blocks import pack_blocks, pack_tables, unpack_blocks, unpack_tables
from workers.pipeline.exchange.output import ROW_BYTES, NodeMeasures
from workers.pipeline.sink import without_queries, write_parts


def report(batch: int, node: int = 0, merged: tuple[int, ...] = ()) -> NodeMeasures:
    """Return what a node says of a batch of which nothing else matters."""
    return NodeMeasures(
        node=node, batch=batch, version=1, records=0, bytes=0, busy_ms=0.0, tasks=1,
        state_bytes=0, late=0, event_ms=None, merged=list(merged),
    )  # fmt: skip


def write_batch(
    client: "redis.Redis",
    cluster: str,
    report: NodeMeasures,
    changed: BatchChanges,
    queries: Mapping[int, ResultQuery],
    database: ResultsDatabase | None = None,
) -> None:
    """Write blocks and changed windows."""

    def known(wanted: Collection[int]) -> dict[int, ResultQuery]:
        return {query: queries[query] for query in wanted if query in queries}

    writer = WindowWriter(database or results_database(), cluster)
    for payload in pack_blocks(changed.blocks, ROW_BYTES):
        for recipients, tables in unpack_blocks(payload):
            writer.take_shared(report.batch, recipients, tables, known)
    tables = list(unpack_tables(pack_tables(changed.windows)))
    write_parts(client, cluster, report, tables, report.merged)
    writer.take(report.batch, without_queries(tables, report.merged), known)
    writer.flush()
