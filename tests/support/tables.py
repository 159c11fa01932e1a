"""Compiled tables for the pipeline's tests."""

from controlplane.wire.routing import Op, RoutingDelta, RoutingTable
from workers.pipeline.tables import CompiledTable


def compiled(*ops: Op) -> CompiledTable:
    """Return the table that `ops` make from nothing."""
    return CompiledTable(RoutingTable().apply(RoutingDelta(1, ops)))
