"""The routing table: which node evaluates which query, which split node reads which stream.

A table is an immutable value, numbered by version. What travels is the *delta* from one version
to the next, so that placing one query among ten thousand costs one small message; snapshots let
a reader start anywhere.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

from controlplane.wire.errors import InconsistentDelta, RoutingGap


@dataclass(frozen=True, slots=True)
class Route:
    """Where one query runs and what it computes.

    `run` counts the query's lives on a node: a move without its state begins a new one.
    """

    run: int
    node: int
    streams: tuple[int, ...]
    window_s: int
    value: str


@dataclass(frozen=True, slots=True)
class AddQuery:
    """Begin to evaluate `query` on `node`."""

    query: int
    run: int
    node: int
    streams: tuple[int, ...]
    window_s: int
    value: str

    def route(self) -> Route:
        """Return the table row this operation makes."""
        return Route(self.run, self.node, self.streams, self.window_s, self.value)


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
class AssignStream:
    """Let split node `split` read `stream`."""

    stream: int
    split: int


Op = AddQuery | RemoveQuery | MoveQuery | AssignStream

_NAMES: Final[Mapping[str, type[Op]]] = MappingProxyType(
    {"add": AddQuery, "remove": RemoveQuery, "move": MoveQuery, "stream": AssignStream}
)
_TAGS: Final = {kind: name for name, kind in _NAMES.items()}


def op_to_json(op: Op) -> dict[str, Any]:
    """Return `op` as JSON values; `op` names its kind."""
    return {"op": _TAGS[type(op)], **asdict(op)}


def op_from_json(row: Mapping[str, Any]) -> Op:
    """Return the operation that `op_to_json` wrote."""
    values = {name: value for name, value in row.items() if name != "op"}
    if "streams" in values:
        values["streams"] = tuple(values["streams"])
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
    """The whole routing at one version; never changed, only followed by the next."""

    version: int = 0
    queries: Mapping[int, Route] = field(default_factory=dict)
    splits: Mapping[int, int] = field(default_factory=dict)

    def apply(self, *deltas: RoutingDelta) -> "RoutingTable":
        """Return the table after `deltas`, which must follow each other without a gap.

        Raises `RoutingGap` on a missing version, `InconsistentDelta` on an unknown query.
        """
        queries, splits, version = dict(self.queries), dict(self.splits), self.version
        for delta in deltas:
            if delta.version != version + 1:
                raise RoutingGap(version, delta.version)
            for op in delta.ops:
                _apply_op(op, queries, splits)
            version = delta.version
        return RoutingTable(version, queries, splits)

    def to_json(self) -> str:
        """Return the whole table as JSON."""
        return json.dumps(
            {
                "version": self.version,
                "queries": [[query, *_route_row(route)] for query, route in self.queries.items()],
                "splits": list(self.splits.items()),
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "RoutingTable":
        """Return the table that `to_json` wrote."""
        row = json.loads(text)
        queries = {
            query: Route(run, node, tuple(streams), window_s, value)
            for query, run, node, streams, window_s, value in row["queries"]
        }
        return cls(row["version"], queries, dict(row["splits"]))


def _route_row(route: Route) -> list[Any]:
    return [route.run, route.node, list(route.streams), route.window_s, route.value]


def _apply_op(op: Op, queries: dict[int, Route], splits: dict[int, int]) -> None:
    match op:
        case AddQuery():
            if op.query in queries:
                raise InconsistentDelta(f"query {op.query} is in the table already")
            queries[op.query] = op.route()
        case MoveQuery():
            queries[op.query] = replace(_route_of(queries, op.query), run=op.run, node=op.node)
        case RemoveQuery():
            _route_of(queries, op.query)
            del queries[op.query]
        case AssignStream():
            splits[op.stream] = op.split


def _route_of(queries: Mapping[int, Route], query: int) -> Route:
    if query not in queries:
        raise InconsistentDelta(f"query {query} is not in the table")
    return queries[query]
