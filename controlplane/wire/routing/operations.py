"""What changes a routing table, and the operations as JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from sys import intern
from types import MappingProxyType
from typing import Any, Final

from controlplane.wire.routing.route import NOBODY, Route, Span, check_spans
from controlplane.wire.routing.upgrade import upgraded_op
from controlplane.wire.schema import StreamSchema
from controlplane.wire.shedding import INPUT, Shed


@dataclass(frozen=True, slots=True)
class AddQuery:
    """Begin to evaluate `query` on `node`."""

    query: int
    run: int
    node: int
    streams: tuple[int, ...]
    text: str
    spans: tuple[Span, ...] = ()
    scheme: str = ""
    merge: int = NOBODY

    def route(self) -> Route:
        """Return the table row this operation makes. Raises `InconsistentDelta`."""
        check_spans(self.query, self.spans)
        return Route(
            self.run, self.node, self.streams, intern(self.text), self.spans, self.scheme,
            self.merge,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RemoveQuery:
    """Stop evaluating `query` and drop its state."""

    query: int


@dataclass(frozen=True, slots=True)
class MoveQuery:
    """Evaluate `query` on `node` from now on, as run `run`, without its old state."""

    query: int
    run: int
    node: int


@dataclass(frozen=True, slots=True)
class MoveTasks:
    """Hand tasks on with their state: each of `moves` says (node, first, past) where they go."""

    query: int
    moves: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class AssignStream:
    """Let split node `split` read `stream`."""

    stream: int
    split: int


@dataclass(frozen=True, slots=True)
class SetSchema:
    """Let the records of `stream` have these columns and times."""

    stream: int
    schema: StreamSchema


@dataclass(frozen=True, slots=True)
class SetScheme:
    """Let keys of `query` find their task by another scheme; its parts merge as before."""

    query: int
    scheme: str


@dataclass(frozen=True, slots=True)
class MoveMerge:
    """Let `node` merge the windows of `query`, which another node did."""

    query: int
    node: int


@dataclass(frozen=True, slots=True)
class SetCapacity:
    """Let `node` process at most so many records a second, None for as many as it can."""

    node: int
    per_s: float | None


@dataclass(frozen=True, slots=True)
class SetShed:
    """Let an arc drop records: the input arc of `stream`, or its split arc to `query`."""

    stream: int
    query: int = INPUT
    shed: Shed | None = None


@dataclass(frozen=True, slots=True)
class SetNodes:
    """Let the cluster have nodes 0..nodes-1; tasks of a node that is removed must have moved."""

    nodes: int


Op = (
    AddQuery | RemoveQuery | MoveQuery | MoveTasks | AssignStream
    | SetSchema | SetScheme | MoveMerge | SetCapacity | SetShed | SetNodes
)  # fmt: skip

_NAMES: Final[Mapping[str, type[Op]]] = MappingProxyType(
    {
        "add": AddQuery,
        "remove": RemoveQuery,
        "move": MoveQuery,
        "tasks": MoveTasks,
        "stream": AssignStream,
        "schema": SetSchema,
        "scheme": SetScheme,
        "merge": MoveMerge,
        "capacity": SetCapacity,
        "shed": SetShed,
        "nodes": SetNodes,
    }
)
_TAGS: Final = {kind: name for name, kind in _NAMES.items()}


def op_to_json(op: Op) -> dict[str, Any]:
    """Return `op` as JSON values; `op` names its kind."""
    # Most queries have no spans: the message that places one stays small.
    values = {
        one.name: value for one in fields(op) if (value := getattr(op, one.name)) != one.default
    }
    for name in ("shed", "schema"):
        if values.get(name) is not None:
            values[name] = values[name].to_json()
    return {"op": _TAGS[type(op)], **values}


def op_from_json(row: Mapping[str, Any]) -> Op:
    """Return the operation that `op_to_json` wrote."""
    values = {name: value for name, value in upgraded_op(row).items() if name != "op"}
    if "streams" in values:
        values["streams"] = tuple(values["streams"])
    for name in ("spans", "moves"):
        if name in values:
            values[name] = tuple(tuple(span) for span in values[name])
    if "shed" in values:
        values["shed"] = Shed.from_json(values["shed"])
    if "schema" in values:
        values["schema"] = schema_of(values["schema"])
    return _NAMES[row["op"]](**values)


def schema_of(row: Mapping[str, Any]) -> StreamSchema:
    """Return a schema; streams with the same columns share one value."""
    return StreamSchema.from_text(json.dumps(row, sort_keys=True))
