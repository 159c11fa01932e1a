"""The routing table: which node evaluates which query, which split node reads which stream.

A table is an immutable value, numbered by version. What travels is the *delta* from one version
to the next, so that placing one query among ten thousand costs one small message; snapshots let
a reader start anywhere.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from controlplane.wire.errors import InconsistentDelta, RoutingGap

# Consecutive tasks of one node: (node, first, past the last).
Span = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Route:
    """Where one query runs and what it computes.

    `run` counts the query's lives on a node: a move without its state begins a new one. `text`:
    the query as JSON (`query.QueryText`); empty for a mice query, which `window_s` and `value`
    describe. `spans`: task intervals (node, first, past) in order; empty for one task on `node`.
    """

    run: int
    node: int
    streams: tuple[int, ...]
    window_s: int
    value: str
    text: str = ""
    spans: tuple[Span, ...] = ()

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
    window_s: int
    value: str
    text: str = ""
    spans: tuple[Span, ...] = ()

    def route(self) -> Route:
        """Return the table row this operation makes. Raises `InconsistentDelta`."""
        _check_spans(self.query, self.spans)
        return Route(
            self.run, self.node, self.streams, self.window_s, self.value, self.text, self.spans
        )


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


Op = AddQuery | RemoveQuery | MoveQuery | MoveTasks | AssignStream

_NAMES: Final[Mapping[str, type[Op]]] = MappingProxyType(
    {
        "add": AddQuery,
        "remove": RemoveQuery,
        "move": MoveQuery,
        "tasks": MoveTasks,
        "stream": AssignStream,
    }
)
_TAGS: Final = {kind: name for name, kind in _NAMES.items()}


def op_to_json(op: Op) -> dict[str, Any]:
    """Return `op` as JSON values; `op` names its kind."""
    # Most queries have neither text nor spans: the message that places one stays small.
    values = {name: value for name, value in asdict(op).items() if value not in ("", ())}
    return {"op": _TAGS[type(op)], **values}


def op_from_json(row: Mapping[str, Any]) -> Op:
    """Return the operation that `op_to_json` wrote."""
    values = {name: value for name, value in row.items() if name != "op"}
    if "streams" in values:
        values["streams"] = tuple(values["streams"])
    for name in ("spans", "moves"):
        if name in values:
            values[name] = tuple(tuple(span) for span in values[name])
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
            query: Route(run, node, tuple(streams), window_s, value, *_optional(*more))
            for query, run, node, streams, window_s, value, *more in row["queries"]
        }
        return cls(row["version"], queries, dict(row["splits"]))


def _route_row(route: Route) -> list[Any]:
    row = [route.run, route.node, list(route.streams), route.window_s, route.value]
    return [*row, route.text, list(route.spans)] if route.text or route.spans else row


def _optional(text: str = "", spans: Sequence[Sequence[int]] = ()) -> tuple[str, tuple[Span, ...]]:
    return text, tuple((node, first, past) for node, first, past in spans)


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


def _with_moves(query: int, route: Route, moves: Sequence[Span]) -> Route:
    owners = list(route.owners())
    for node, first, past in moves:
        if not 0 <= first < past <= len(owners):
            why = f"query {query} has {len(owners)} tasks, not [{first}, {past})"
            raise InconsistentDelta(why)
        owners[first:past] = [node] * (past - first)
    spans = spans_of(owners) if route.spans else ()
    return replace(route, node=owners[0], spans=spans)


def _apply_op(op: Op, queries: dict[int, Route], splits: dict[int, int]) -> None:
    match op:
        case AddQuery():
            if op.query in queries:
                raise InconsistentDelta(f"query {op.query} is in the table already")
            queries[op.query] = op.route()
        case MoveQuery():
            route = _route_of(queries, op.query)
            everything = len(route.owners())
            moved = _with_moves(op.query, route, [(op.node, 0, everything)])
            queries[op.query] = replace(moved, run=op.run)
        case MoveTasks():
            route = _route_of(queries, op.query)
            queries[op.query] = _with_moves(op.query, route, op.moves)
        case RemoveQuery():
            _route_of(queries, op.query)
            del queries[op.query]
        case AssignStream():
            splits[op.stream] = op.split


def _route_of(queries: Mapping[int, Route], query: int) -> Route:
    if query not in queries:
        raise InconsistentDelta(f"query {query} is not in the table")
    return queries[query]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A task whose state goes from one node to another."""

    query: int
    task: int
    source: int
    target: int


def transfers(before: RoutingTable, after: RoutingTable) -> Iterator[Transfer]:
    """Yield the tasks that change their node between two tables and keep their state.

    A query that ended, came, or began a new run in between hands nothing on.
    """
    for query, route in after.queries.items():
        old = before.queries.get(query)
        if old is None or old is route or old.run != route.run:
            continue
        pairs = zip(old.owners(), route.owners(), strict=True)
        for task, (source, target) in enumerate(pairs):
            if source != target:
                yield Transfer(query, task, source, target)


def in_transition(before: RoutingTable, after: RoutingTable) -> RoutingTable:
    """Return the table of the batch that leads from one to the other.

    It is the later one, but tasks that hand their state on are still where they were: they take
    this batch's records there, and their state, with all of them in it, goes to the next batch.
    """
    queries = dict(after.queries)
    for one in transfers(before, after):
        route = queries[one.query]
        queries[one.query] = _with_moves(one.query, route, [(one.source, one.task, one.task + 1)])
    return RoutingTable(after.version, queries, after.splits)
