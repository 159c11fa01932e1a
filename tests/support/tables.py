"""Compiled tables for the pipeline's tests."""

from controlplane.wire.routing import (
    Action,
    AddQuery,
    AssignStream,
    RoutingDelta,
    RoutingTable,
    SetSchema,
)
from tests.support.schemas import declared
from workers.pipeline.routing.compiled_table import CompiledTable


def compiled(*ops: Action) -> CompiledTable:
    """Return the table that `ops` make from nothing; streams without a schema have reports."""
    said = {op.stream for op in ops if isinstance(op, SetSchema)}
    read = {stream for op in ops if isinstance(op, AddQuery) for stream in op.streams}
    read |= {op.stream for op in ops if isinstance(op, AssignStream)}
    every = (*declared(sorted(read - said)), *ops)
    return CompiledTable(RoutingTable().apply(RoutingDelta(1, every)))
