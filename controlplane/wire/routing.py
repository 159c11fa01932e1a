"""The routing table: which node evaluates which query, which split node reads which stream.

A table is an immutable value, numbered by version. What travels is the *delta* from one version
to the next, so that placing one query among ten thousand costs one small message; snapshots let
a reader start anywhere.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from sys import intern
from types import MappingProxyType
from typing import Any, Final, TypeVar

from controlplane.wire.errors import InconsistentDelta, RoutingGap
from controlplane.wire.routing_upgrade import upgraded_op, upgraded_row
from controlplane.wire.schema import StreamSchema
from controlplane.wire.shedding import INPUT, Arc, Shed

K = TypeVar("K")
V = TypeVar("V")
# Consecutive tasks of one node: (node, first, past the last).
Span = tuple[int, int, int]
# The node that merges a query whose parts are merged by whoever reads them.
NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class Route:
    """Where one query runs and what it computes.

    `run` counts the query's lives on a node: a move without its state begins a new one. `text`:
    the query as JSON (`query.QueryText`). `spans`: task intervals (node, first, past) in order;
    empty for one task on `node`. `scheme`: how keys find their task, as JSON; empty for the hash of
    the key. `merge`: the node that merges what the tasks have of a window.
    """

    run: int
    node: int
    streams: tuple[int, ...]
    text: str
    spans: tuple[Span, ...] = ()
    scheme: str = ""
    merge: int = NOBODY

    def owners(self) -> tuple[int, ...]:
        """Return the node of each task."""
        if not self.spans:
            return (self.node,)
        return tuple(node for node, first, past in self.spans for _ in range(first, past))


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
        _check_spans(self.query, self.spans)
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
        values["schema"] = _schema_of(values["schema"])
    return _NAMES[row["op"]](**values)


@dataclass(frozen=True, slots=True)
class RoutingDelta:
    """What leads from table `version - 1` to table `version`."""

    version: int
    ops: tuple[Op, ...]

    def to_json(self) -> str:
        """Return the delta as one line of JSON."""
        return json.dumps(
            {"version": self.version, "ops": [op_to_json(op) for op in self.ops]},
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "RoutingDelta":
        """Return the delta that `to_json` wrote."""
        row = json.loads(text)
        return cls(row["version"], tuple(op_from_json(op) for op in row["ops"]))


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """The whole routing at one version; never changed, only followed by the next.

    `queries`: route by query; `splits`: split node by stream; `capacities`: records/s by node with
    an emulated capacity; `sheds`: what arcs drop; `nodes`: how many nodes there are, 0 in a table
    that was published before tables said it; `schemas`: what the records of each stream are.
    """

    version: int = 0
    queries: Mapping[int, Route] = field(default_factory=dict)
    splits: Mapping[int, int] = field(default_factory=dict)
    capacities: Mapping[int, float] = field(default_factory=dict)
    sheds: Mapping[Arc, Shed] = field(default_factory=dict)
    nodes: int = 0
    schemas: Mapping[int, StreamSchema] = field(default_factory=dict)

    def apply(self, *deltas: RoutingDelta) -> "RoutingTable":
        """Return the table after `deltas`, which must follow each other without a gap.

        Raises `RoutingGap` on a missing version, `InconsistentDelta` on an unknown query.
        """
        after, version = _Parts.of(self), self.version
        for delta in deltas:
            if delta.version != version + 1:
                raise RoutingGap(version, delta.version)
            for op in delta.ops:
                after.take(op)
            version = delta.version
        return after.table(version)

    def to_json(self) -> str:
        """Return the whole table as JSON."""
        return json.dumps(
            {
                "version": self.version,
                "queries": [[query, *_route_row(route)] for query, route in self.queries.items()],
                "splits": list(self.splits.items()),
                "capacities": list(self.capacities.items()),
                "sheds": [[*arc, shed.to_json()] for arc, shed in self.sheds.items()],
                "nodes": self.nodes,
                "schemas": _schema_rows(self.schemas),
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "RoutingTable":
        """Return the table that `to_json` wrote."""
        row = json.loads(text)
        queries = {
            query: Route(run, node, tuple(streams), intern(text), *_optional(*more))
            for query, run, node, streams, text, *more in map(upgraded_row, row["queries"])
        }
        sheds = {(stream, query): Shed.from_json(one) for stream, query, one in row["sheds"]}
        schemas = {
            stream: _schema_of(schema)
            for schema, streams in row.get("schemas", ())
            for stream in streams
        }
        splits, capacities, nodes = (
            dict(row["splits"]),
            dict(row["capacities"]),
            row.get("nodes", 0),
        )
        return cls(row["version"], queries, splits, capacities, sheds, nodes, schemas)


def _schema_of(row: Mapping[str, Any]) -> StreamSchema:
    """Return a schema; streams with the same columns share one value."""
    return StreamSchema.from_text(json.dumps(row, sort_keys=True))


def _schema_rows(schemas: Mapping[int, StreamSchema]) -> list[list[Any]]:
    """Return each schema once, with the streams that have it."""
    found: dict[StreamSchema, list[int]] = {}
    for stream, schema in schemas.items():
        found.setdefault(schema, []).append(stream)
    return [[schema.to_json(), streams] for schema, streams in found.items()]


def _route_row(route: Route) -> list[Any]:
    row = [route.run, route.node, list(route.streams), route.text]
    more = [list(route.spans), route.scheme, route.merge]
    return [*row, *more] if more != [[], "", NOBODY] else row


def _optional(
    spans: Sequence[Sequence[int]] = (), scheme: str = "", merge: int = NOBODY
) -> tuple[tuple[Span, ...], str, int]:
    return tuple((node, first, past) for node, first, past in spans), scheme, merge


def _check_spans(query: int, spans: Sequence[Span]) -> None:
    """Raise unless spans hold tasks 0, 1, … without gap or overlap."""
    at = 0
    for _, first, past in spans:
        if first != at or past <= first:
            raise InconsistentDelta(f"query {query}: tasks [{first}, {past}) cannot follow {at}")
        at = past


def spans_of(owners: Sequence[int]) -> tuple[Span, ...]:
    """Return the runs of consecutive tasks on one node."""
    edges = [0, *(at for at in range(1, len(owners)) if owners[at] != owners[at - 1]), len(owners)]
    return tuple((owners[first], first, past) for first, past in pairwise(edges))


def spans_from(begins: Sequence[tuple[int, int]], count: int) -> tuple[Span, ...]:
    """Return the intervals of `count` tasks that begin so, by (first task, node).

    Each ends where the next one begins.
    """
    ends = [first for first, _ in begins[1:]] + [count]
    return tuple((node, first, past) for (first, node), past in zip(begins, ends, strict=True))


def with_moves(query: int, route: Route, moves: Sequence[Span]) -> Route:
    """Return the route with tasks on other nodes. Raises `InconsistentDelta`."""
    owners = list(route.owners())
    for node, first, past in moves:
        if not 0 <= first < past <= len(owners):
            why = f"query {query} has {len(owners)} tasks, not [{first}, {past})"
            raise InconsistentDelta(why)
        owners[first:past] = [node] * (past - first)
    spans = spans_of(owners) if route.spans else ()
    return replace(route, node=owners[0], spans=spans)


@dataclass
class _Parts:
    """The parts of a table while operations change them."""

    queries: dict[int, Route]
    splits: dict[int, int]
    capacities: dict[int, float]
    sheds: dict[Arc, Shed]
    nodes: int
    schemas: dict[int, StreamSchema]

    @classmethod
    def of(cls, table: "RoutingTable") -> "_Parts":
        return cls(
            dict(table.queries), dict(table.splits), dict(table.capacities), dict(table.sheds),
            table.nodes, dict(table.schemas),
        )  # fmt: skip

    def table(self, version: int) -> "RoutingTable":
        return RoutingTable(
            version, self.queries, self.splits, self.capacities, self.sheds, self.nodes,
            self.schemas,
        )  # fmt: skip

    def take(self, op: Op) -> None:
        match op:
            case AddQuery() | RemoveQuery():
                self._come_or_go(op)
            case MoveQuery():
                route = self._route(op.query)
                everything = (op.node, 0, len(route.owners()))
                moved = with_moves(op.query, route, [everything])
                self.queries[op.query] = replace(moved, run=op.run)
            case MoveTasks():
                self.queries[op.query] = with_moves(op.query, self._route(op.query), op.moves)
            case SetScheme():
                self.queries[op.query] = replace(self._route(op.query), scheme=op.scheme)
            case MoveMerge():
                self.queries[op.query] = _merged_by(op, self._route(op.query))
            case AssignStream() | SetSchema():
                self._stream(op)
            case SetCapacity() | SetShed() | SetNodes():
                self._limit(op)

    def _stream(self, op: AssignStream | SetSchema) -> None:
        if isinstance(op, SetSchema):
            self.schemas[op.stream] = op.schema
        else:
            self.splits[op.stream] = op.split

    def _come_or_go(self, op: AddQuery | RemoveQuery) -> None:
        if isinstance(op, RemoveQuery):
            self._route(op.query)
            del self.queries[op.query]
            self.sheds = {arc: shed for arc, shed in self.sheds.items() if arc[1] != op.query}
        elif op.query in self.queries:
            raise InconsistentDelta(f"query {op.query} is in the table already")
        else:
            self.queries[op.query] = op.route()

    def _limit(self, op: SetCapacity | SetShed | SetNodes) -> None:
        if isinstance(op, SetNodes):
            self.nodes = op.nodes
            return
        if isinstance(op, SetCapacity):
            _put(self.capacities, op.node, op.per_s)
            return
        if op.shed is not None:
            op.shed.check()
        _put(self.sheds, (op.stream, op.query), op.shed)

    def _route(self, query: int) -> Route:
        if query not in self.queries:
            raise InconsistentDelta(f"query {query} is not in the table")
        return self.queries[query]


def _merged_by(op: MoveMerge, route: Route) -> Route:
    # What a reader has to look at must not change while a query lives.
    if (route.merge == NOBODY) != (op.node == NOBODY):
        raise InconsistentDelta(f"query {op.query} has a merge node all its life or never")
    return replace(route, merge=op.node)


def _put(known: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = value
