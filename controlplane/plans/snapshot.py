"""Snapshots: the input of proposals, a cluster at one routing version as a typed value.

The value is stored as canonical JSON and sealed with the proposal. Nothing here imports Django.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, NamedTuple, Protocol, Self, TypeVar

from controlplane.wire.routing.split_assignment import SourcePartition, SplitAssignment


class PlannerInput(Protocol):
    """A part of a snapshot that only some planners need; `name`: its name in the snapshot."""

    name: ClassVar[str]

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Return the input that `to_json` wrote."""


Kind = TypeVar("Kind", bound=PlannerInput)


class StoredInput:
    """An input as it was stored, which is parsed when a planner reads it.

    So a snapshot can be read without the planners whose inputs it has.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._content: Mapping[str, Any] | PlannerInput = row

    def value(self, kind: type[Kind]) -> Kind:
        """Return the input, parsed once."""
        if isinstance(self._content, Mapping):
            self._content = kind.from_json(self._content)
        assert isinstance(self._content, kind)
        return self._content

    def to_json(self) -> dict[str, Any]:
        """Return the input as JSON values."""
        content = self._content
        return dict(content) if isinstance(content, Mapping) else content.to_json()


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node by its index; `capacity` in records/s; planners assign work to active nodes.

    `emulated`: the data plane limits the node to its capacity.
    """

    index: int
    name: str
    capacity: float
    active: bool
    emulated: bool = False


class StreamRow(NamedTuple):
    """A stream that a running query reads, and its records/s."""

    id: int
    rate: float


class QueryRow(NamedTuple):
    """A running query of one task: the index of its node, and the ids of its streams."""

    id: int
    name: str
    node: int
    streams: list[int]


class SplitQueryRow(NamedTuple):
    """A running query of several tasks.

    `ranges`: (node index, first task, stop); `work`: records/s per task; `state`: bytes per task;
    `streams`: the ids of its streams.
    """

    id: int
    name: str
    ranges: list[list[int]]
    work: list[float]
    state: list[int]
    streams: list[int]


class GroupingRow(NamedTuple):
    """The key grouping of a query as JSON text, "" for the hash of the key; its aggregator nodes.

    `aggregator`: the first of them, `more_aggregators`: the others. `joins`: whether the query is a
    join.
    """

    query: int
    grouping: str
    aggregator: int
    joins: bool = False
    more_aggregators: Sequence[int] = ()


class DropRuleRow(NamedTuple):
    """The drop rule of an edge as JSON; `query` 0: the input edge of the stream."""

    stream: int
    query: int
    rule: dict[str, Any]


class Excluded(NamedTuple):
    """An object that no plan may move: a query or node by name, a stream by id."""

    kind: str
    subject: str | int


@dataclass(frozen=True)
class ClusterSnapshot:
    """A cluster at a routing version.

    `nu`: the relative slack of the balance; `nodes` are in the order of their index, `streams`,
    `queries` and `split` of their id. `state`: measured bytes of state by query of one task;
    unmeasured values count 0. `groupings`: queries with a key grouping or an aggregator; `splits`:
    the split node of each stream, `partitions`: of the partitions that are assigned explicitly;
    `drop_rules`: those of all edges; `ladder`: the armed ladder as
    JSON; `inputs`: the inputs of the planners for which it was taken, by name.
    """

    version: int
    nu: float
    nodes: list[NodeRow]
    streams: list[StreamRow]
    queries: list[QueryRow]
    state: dict[int, int]
    split: list[SplitQueryRow]
    excluded: list[Excluded]
    groupings: list[GroupingRow] = field(default_factory=list)
    splits: dict[int, int] = field(default_factory=dict)
    split_count: int = 0
    split_capacity: float = 0.0
    split_emulated: bool = False
    drop_rules: list[DropRuleRow] = field(default_factory=list)
    inputs: Mapping[str, PlannerInput | StoredInput] = field(default_factory=dict)
    ladder: dict[str, Any] | None = None
    partitions: dict[SourcePartition, int] = field(default_factory=dict)

    @property
    def assignment(self) -> SplitAssignment:
        """Return the split nodes of streams and source partitions."""
        return SplitAssignment(self.splits, self.partitions, self.split_count)

    @property
    def query_count(self) -> int:
        """Return the number of running queries."""
        return len(self.queries) + len(self.split)

    def input(self, kind: type[Kind]) -> Kind | None:
        """Return a planner's input, None in snapshots for other planners."""
        value = self.inputs.get(kind.name)
        if isinstance(value, StoredInput):
            return value.value(kind)
        assert value is None or isinstance(value, kind)
        return value

    def to_json(self) -> dict[str, Any]:
        """Return the snapshot as JSON values."""
        return vars(self) | {
            "nodes": [asdict(node) for node in self.nodes],
            "state": list(self.state.items()),
            "splits": list(self.splits.items()),
            "inputs": {name: value.to_json() for name, value in self.inputs.items()},
            "partitions": [[*place, split] for place, split in self.partitions.items()],
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "ClusterSnapshot":
        """Return the snapshot that `to_json` wrote."""
        return cls(
            row["version"],
            row["nu"],
            [NodeRow(**node) for node in row["nodes"]],
            [StreamRow(*stream) for stream in row["streams"]],
            list(map(QueryRow._make, row["queries"])),
            dict(row["state"]),
            list(map(SplitQueryRow._make, row["split"])),
            [Excluded(*excluded) for excluded in row["excluded"]],
            [GroupingRow(*grouping) for grouping in row["groupings"]],
            dict(row["splits"]),
            row["split_count"],
            row["split_capacity"],
            row["split_emulated"],
            [DropRuleRow(*rule) for rule in row["drop_rules"]],
            {name: StoredInput(value) for name, value in row["inputs"].items()},
            row["ladder"],
            # Snapshots from before partitions were assigned have none.
            {SourcePartition(*place): split for *place, split in row.get("partitions", ())},
        )


EMPTY: Final = ClusterSnapshot(0, 0.0, [], [], [], {}, [], [])


def canonical(value: Any) -> str:
    """Return a value as canonical JSON: sorted keys, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def digest_of(text: str) -> str:
    """Return the sha256 of canonical JSON, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()
