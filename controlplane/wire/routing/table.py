"""The routing table at one version, and the deltas that lead from one version to the next."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any, TypeVar

from controlplane.wire.errors import InconsistentDelta, RoutingGap
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
    schema_of,
)
from controlplane.wire.routing.route import NOBODY, Route, Span, with_moves
from controlplane.wire.routing.upgrade import upgraded_row
from controlplane.wire.schema import StreamSchema
from controlplane.wire.shedding import Arc, Shed

K = TypeVar("K")
V = TypeVar("V")


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
            stream: schema_of(schema)
            for schema, streams in row.get("schemas", ())
            for stream in streams
        }
        splits, capacities, nodes = (
            dict(row["splits"]),
            dict(row["capacities"]),
            row.get("nodes", 0),
        )
        return cls(row["version"], queries, splits, capacities, sheds, nodes, schemas)


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
