"""What a node changed in a batch, written as the sink does it."""

import redis

from controlplane.wire.results.blocks import pack_tables, unpack_tables
from controlplane.wire.results.write import WindowChanges
from workers.pipeline.engine.partial_aggregation import BatchChanges
from workers.pipeline.exchange.output import ROW_BYTES, NodeMeasures, pack_blocks
from workers.pipeline.sink import Blocks, write_results


def report(batch: int, node: int = 0, merged: tuple[int, ...] = ()) -> NodeMeasures:
    """Return what a node says of a batch of which nothing else matters."""
    return NodeMeasures(
        node=node, batch=batch, version=1, records=0, bytes=0, busy_ms=0.0, tasks=1,
        state_bytes=0, late=0, event_ms=None, merged=list(merged),
    )  # fmt: skip


def write_batch(
    client: "redis.Redis", cluster: str, report: NodeMeasures, changed: BatchChanges
) -> None:
    """Write blocks and changed windows, and the references of queries that have blocks alone."""
    blocks = Blocks(client, cluster)
    for payload in pack_blocks(changed.blocks, ROW_BYTES):
        blocks.take(report.batch, payload)
    tables = list(unpack_tables(pack_tables(changed.windows)))
    write_results(client, cluster, report, WindowChanges(tables), blocks, report.merged)
    blocks.write_references()
