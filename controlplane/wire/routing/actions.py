"""The actions that change a routing table: their effects, their inverses, the objects they change.

Plans and every change of a cluster's topology are sequences of actions. An action is a value: it
travels as JSON (`action_json`), and applying it to equal tables gives equal tables.
"""

from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Final, NamedTuple, Protocol

from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.drop_rules import DropRule, Edge
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.route import Route
from controlplane.wire.routing.split_assignment import SourcePartition, SplitAssignment
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.base import StreamSource


@dataclass(frozen=True, slots=True)
class NodeState:
    """What a node can process.

    `capacity`: declared records/s. `emulated`: the data plane limits the node to its capacity.
    `active`: planners may assign work to the node.
    """

    capacity: float
    emulated: bool = False
    active: bool = True


@dataclass
class TableDraft:
    """The parts of a routing table while actions change them; it may hold a part of a cluster.

    `queries`: route by query; `splits`: split node by stream; `schemas`: schema by stream;
    `drop_rules`: drop rule by edge; `nodes`: state by node index. `node_count` and `split_count`
    are 0 in a table that was published before tables had them. `split_capacity`: records/s of every
    split node, 0 if it is not declared; `split_emulated`: the data plane limits each split node to
    it. `ladder`: of drop rules, None if none is armed. `sources`: topic by stream, of the streams
    that are topics; `partitions`: split node of the partitions that are assigned explicitly.
    """

    queries: dict[int, Route] = field(default_factory=dict)
    splits: dict[int, int] = field(default_factory=dict)
    schemas: dict[int, StreamSchema] = field(default_factory=dict)
    drop_rules: dict[Edge, DropRule] = field(default_factory=dict)
    nodes: dict[int, NodeState] = field(default_factory=dict)
    node_count: int = 0
    split_count: int = 0
    split_capacity: float = 0.0
    split_emulated: bool = False
    ladder: Ladder | None = None
    sources: dict[int, StreamSource] = field(default_factory=dict)
    partitions: dict[SourcePartition, int] = field(default_factory=dict)

    def copy(self) -> "TableDraft":
        """Return a draft that changes independently of this one."""
        return TableDraft(**{name: copy(part) for name, part in vars(self).items()})

    @property
    def assignment(self) -> SplitAssignment:
        """Return the split nodes of streams and source partitions."""
        return SplitAssignment(self.splits, self.partitions, self.split_count)

    def route(self, query: int) -> Route:
        """Return the route of a query. Raises `InconsistentDelta` if the draft has none."""
        if query not in self.queries:
            raise InconsistentDelta(f"query {query} is not in the table")
        return self.queries[query]

    def node(self, index: int) -> NodeState:
        """Return the state of a node. Raises `InconsistentDelta` if the draft has none."""
        if index not in self.nodes:
            raise InconsistentDelta(f"node {index} is not in the table")
        return self.nodes[index]


class ObjectKind(StrEnum):
    """The kinds of objects that actions change."""

    QUERY = "query"
    STREAM = "stream"
    EDGE = "edge"
    NODE = "node"
    CLUSTER = "cluster"


class ActionObject(NamedTuple):
    """An object that an action changes: a query or stream by id, an edge by both, a node by index.

    Actions on different subjects can be applied in any order.
    """

    kind: ObjectKind
    id: int = 0
    query: int = 0


CLUSTER: Final = ActionObject(ObjectKind.CLUSTER)


class Action(Protocol):
    """A change of a routing table."""

    def apply_to(self, draft: TableDraft) -> None:
        """Change the draft. Raises `InconsistentDelta` if the action does not fit it."""

    def inverse(self, draft: TableDraft) -> "tuple[Action, ...]":
        """Return the actions that restore this draft once the action was applied to it."""

    def subjects(self) -> tuple[ActionObject, ...]:
        """Return the objects that the action changes."""


class SingleAction:
    """An action that changes one object: its id is in the field with the name of `kind`."""

    __slots__ = ()
    kind: ClassVar[ObjectKind]

    def subjects(self) -> tuple[ActionObject, ...]:
        """Return the object that the action changes."""
        return (ActionObject(self.kind, getattr(self, self.kind, 0)),)
