"""The routing table at one version, and the deltas that lead from one version to the next."""

import json
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from functools import cached_property
from sys import intern
from typing import Any, Final

from controlplane.wire.errors import RoutingGap
from controlplane.wire.routing.action_json import action_from_json, action_to_json, schema_of
from controlplane.wire.routing.actions import Action, NodeState, TableDraft
from controlplane.wire.routing.drop_rules import DropRule, Edge
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.route import NO_AGGREGATOR, Route, TaskRange
from controlplane.wire.routing.split_assignment import SourcePartition, SplitAssignment
from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.kinds import source_from_json
from controlplane.wire.topics.base import StreamSource

_PARTS: Final = fields(TableDraft)


@dataclass(frozen=True, slots=True)
class RoutingDelta:
    """What leads from table `version - 1` to table `version`."""

    version: int
    actions: tuple[Action, ...]

    def to_json(self) -> str:
        """Return the delta as one line of JSON."""
        return json.dumps(
            {"version": self.version, "ops": [action_to_json(action) for action in self.actions]},
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "RoutingDelta":
        """Return the delta that `to_json` wrote."""
        row = json.loads(text)
        return cls(row["version"], tuple(action_from_json(item) for item in row["ops"]))


@dataclass(frozen=True)
class RoutingTable:
    """The whole routing at one version; never changed, only followed by the next.

    The parts are those of `TableDraft`, which actions change.
    """

    version: int = 0
    queries: Mapping[int, Route] = field(default_factory=dict)
    splits: Mapping[int, int] = field(default_factory=dict)
    schemas: Mapping[int, StreamSchema] = field(default_factory=dict)
    drop_rules: Mapping[Edge, DropRule] = field(default_factory=dict)
    nodes: Mapping[int, NodeState] = field(default_factory=dict)
    node_count: int = 0
    split_count: int = 0
    split_capacity: float = 0.0
    split_emulated: bool = False
    ladder: Ladder | None = None
    sources: Mapping[int, StreamSource] = field(default_factory=dict)
    partitions: Mapping[SourcePartition, int] = field(default_factory=dict)

    @classmethod
    def of(cls, version: int, draft: TableDraft) -> "RoutingTable":
        """Return the table with the parts of a draft, which must not change any more."""
        return cls(version, **vars(draft))

    def draft(self) -> TableDraft:
        """Return a copy of the parts that actions can change."""
        return TableDraft(**{part.name: copy(getattr(self, part.name)) for part in _PARTS})

    @cached_property
    def capacities(self) -> Mapping[int, float]:
        """Return the records/s of the nodes whose capacity is emulated, by node index."""
        return {index: node.capacity for index, node in self.nodes.items() if node.emulated}

    @cached_property
    def assignment(self) -> SplitAssignment:
        """Return the split nodes of streams and source partitions."""
        return SplitAssignment(self.splits, self.partitions, self.split_count)

    def apply(self, *deltas: RoutingDelta) -> "RoutingTable":
        """Return the table after `deltas`, which must follow each other without a gap.

        Raises `RoutingGap` on a missing version, `InconsistentDelta` on an unknown query.
        """
        after, version = self.draft(), self.version
        for delta in deltas:
            if delta.version != version + 1:
                raise RoutingGap(version, delta.version)
            for action in delta.actions:
                action.apply_to(after)
            version = delta.version
        return self.of(version, after)

    def to_json(self) -> str:
        """Return the whole table as JSON."""
        return json.dumps(
            {
                "version": self.version,
                "queries": [[query, *_route_row(route)] for query, route in self.queries.items()],
                "splits": list(self.splits.items()),
                "schemas": _schema_rows(self.schemas),
                "drop_rules": [[*edge, rule.to_json()] for edge, rule in self.drop_rules.items()],
                "nodes": [
                    [index, node.capacity, node.emulated, node.active]
                    for index, node in self.nodes.items()
                ],
                "node_count": self.node_count,
                "split_count": self.split_count,
                "split_capacity": self.split_capacity,
                "split_emulated": self.split_emulated,
                "ladder": self.ladder.to_json() if self.ladder is not None else None,
                "sources": [[stream, item.to_json()] for stream, item in self.sources.items()],
                "partitions": [[*place, split] for place, split in self.partitions.items()],
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "RoutingTable":
        """Return the table that `to_json` wrote."""
        row = json.loads(text)
        return cls(
            row["version"],
            {
                query: Route(incarnation, node, tuple(streams), intern(text), *_optional(*more))
                for query, incarnation, node, streams, text, *more in row["queries"]
            },
            dict(row["splits"]),
            {stream: schema_of(schema) for schema, streams in row["schemas"] for stream in streams},
            {(s, query): DropRule.from_json(rule) for s, query, rule in row["drop_rules"]},
            {index: NodeState(*state) for index, *state in row["nodes"]},
            row["node_count"],
            row["split_count"],
            row["split_capacity"],
            row["split_emulated"],
            Ladder.from_json(row["ladder"]) if row["ladder"] is not None else None,
            {stream: source_from_json(source) for stream, source in row["sources"]},
            # Tables that were published before partitions were assigned have none.
            {SourcePartition(*place): split for *place, split in row.get("partitions", ())},
        )


def _schema_rows(schemas: Mapping[int, StreamSchema]) -> list[list[Any]]:
    """Return each schema once, with the streams that have it."""
    result: dict[StreamSchema, list[int]] = {}
    for stream, schema in schemas.items():
        result.setdefault(schema, []).append(stream)
    return [[schema.to_json(), streams] for schema, streams in result.items()]


def _route_row(route: Route) -> list[Any]:
    row = [route.incarnation, route.node, list(route.streams), route.text]
    more = [list(route.task_ranges), route.key_grouping, route.aggregator]
    if route.more_aggregators:
        more.append(list(route.more_aggregators))
    return [*row, *more] if more != [[], "", NO_AGGREGATOR] else row


def _optional(
    task_ranges: Sequence[Sequence[int]] = (),
    key_grouping: str = "",
    aggregator: int = NO_AGGREGATOR,
    more_aggregators: Sequence[int] = (),
) -> tuple[tuple[TaskRange, ...], str, int, tuple[int, ...]]:
    ranges = tuple((node, first, stop) for node, first, stop in task_ranges)
    return ranges, key_grouping, aggregator, tuple(more_aggregators)
