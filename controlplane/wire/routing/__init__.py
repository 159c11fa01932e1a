"""The routing table: which node evaluates which query, which split node reads which stream.

A table is an immutable value, numbered by version. What travels is the *delta* from one version
to the next, so that placing one query among ten thousand costs one small message; snapshots let
a reader start anywhere.
"""

from controlplane.wire.routing.operations import (
    AddQuery,
    AssignStream,
    MoveMerge,
    MoveQuery,
    MoveTasks,
    Op,
    RemoveQuery,
    SetCapacity,
    SetNodes,
    SetSchema,
    SetScheme,
    SetShed,
    op_from_json,
    op_to_json,
)
from controlplane.wire.routing.route import NOBODY, Route, Span, spans_from, spans_of, with_moves
from controlplane.wire.routing.table import RoutingDelta, RoutingTable

__all__ = [
    "NOBODY",
    "AddQuery",
    "AssignStream",
    "MoveMerge",
    "MoveQuery",
    "MoveTasks",
    "Op",
    "RemoveQuery",
    "Route",
    "RoutingDelta",
    "RoutingTable",
    "SetCapacity",
    "SetNodes",
    "SetSchema",
    "SetScheme",
    "SetShed",
    "Span",
    "op_from_json",
    "op_to_json",
    "spans_from",
    "spans_of",
    "with_moves",
]
