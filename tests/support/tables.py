"""Compiled tables for the pipeline's tests."""

from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import AssignStream, SetSchema
from controlplane.wire.routing.query_actions import AddQuery
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from tests.support.schemas import declared
from workers.pipeline.routing.compiled_table import CompiledTable


def compiled(*ops: Action) -> CompiledTable:
    """Return the table that `ops` make from nothing; streams without a schema have reports."""
    said = {op.stream for op in ops if isinstance(op, SetSchema)}
    read = {stream for op in ops if isinstance(op, AddQuery) for stream in op.streams}
    read |= {op.stream for op in ops if isinstance(op, AssignStream)}
    every = (*declared(sorted(read - said)), *ops)
    return CompiledTable(RoutingTable().apply(RoutingDelta(1, every)))
