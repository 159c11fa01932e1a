"""Actions that change streams, edges, nodes, or the cluster as a whole."""

from dataclasses import dataclass, replace
from typing import Final

from controlplane.wire.errors import InconsistentDelta
from controlplane.wire.routing.actions import (
    Action,
    ActionObject,
    NodeState,
    ObjectKind,
    SingleAction,
    TableDraft,
)
from controlplane.wire.routing.drop_rules import INPUT, DropRule
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.split_assignment import SourcePartition
from controlplane.wire.schema import StreamSchema
from controlplane.wire.topics.base import StreamSource


@dataclass(frozen=True, slots=True)
class AssignStream(SingleAction):
    """Let split node `split` read `stream`."""

    kind = ObjectKind.STREAM
    stream: int
    split: int

    def apply_to(self, draft: TableDraft) -> None:
        """Assign the stream."""
        draft.splits[self.stream] = self.split

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the assignment to the present split node; nothing for a new stream."""
        if self.stream not in draft.splits:
            return ()
        return (AssignStream(self.stream, draft.splits[self.stream]),)


@dataclass(frozen=True, slots=True)
class AssignPartition(SingleAction):
    """Let split node `split` read `partition` of the source of `stream`.

    None: the one that it has in the round-robin of partitions without an assignment.
    """

    kind = ObjectKind.STREAM
    stream: int
    partition: int
    split: int | None = None

    @property
    def place(self) -> SourcePartition:
        """Return the partition."""
        return SourcePartition(self.stream, self.partition)

    def apply_to(self, draft: TableDraft) -> None:
        """Assign the partition."""
        if self.split is None:
            draft.partitions.pop(self.place, None)
        else:
            draft.partitions[self.place] = self.split

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present assignment, or that there is none."""
        return (AssignPartition(self.stream, self.partition, draft.partitions.get(self.place)),)


def assignments_of(draft: TableDraft, stream: int) -> list[AssignPartition]:
    """Return what assigns the partitions of a stream's source as they are assigned explicitly."""
    return [AssignPartition(stream, place.partition, split)
            for place, split in draft.partitions.items()
            if place.stream == stream and place.partition is not None]  # fmt: skip


@dataclass(frozen=True, slots=True)
class RemoveStream(SingleAction):
    """Let nobody read `stream` any more; all that belongs to it is removed with it."""

    kind = ObjectKind.STREAM
    stream: int

    def apply_to(self, draft: TableDraft) -> None:
        """Remove the stream. Raises `InconsistentDelta` if it is unknown, or a query reads it."""
        readers = [query for query, route in draft.queries.items() if self.stream in route.streams]
        if self.stream not in draft.splits or readers:
            why = f"queries {readers} read it" if readers else "it is not in the table"
            raise InconsistentDelta(f"stream {self.stream} cannot be removed: {why}")
        del draft.splits[self.stream]
        draft.schemas.pop(self.stream, None)
        draft.sources.pop(self.stream, None)
        for edge in [edge for edge in draft.drop_rules if edge[0] == self.stream]:
            del draft.drop_rules[edge]
        for action in assignments_of(draft, self.stream):
            del draft.partitions[action.place]

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return what adds the stream again, with all that belongs to it."""
        actions: list[Action] = list(AssignStream(self.stream, 0).inverse(draft))
        if self.stream in draft.schemas:
            actions.append(SetSchema(self.stream, draft.schemas[self.stream]))
        if self.stream in draft.sources:
            actions.append(SetSource(self.stream, draft.sources[self.stream]))
        actions += assignments_of(draft, self.stream)
        rules = (item for item in draft.drop_rules.items() if item[0][0] == self.stream)
        return (*actions, *(SetDropRule(*edge, rule) for edge, rule in rules))


@dataclass(frozen=True, slots=True)
class SetSchema(SingleAction):
    """Set the schema of the records of `stream`."""

    kind = ObjectKind.STREAM
    stream: int
    schema: StreamSchema

    def apply_to(self, draft: TableDraft) -> None:
        """Set the schema."""
        draft.schemas[self.stream] = self.schema

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present schema; nothing for a stream without one."""
        if self.stream not in draft.schemas:
            return ()
        return (SetSchema(self.stream, draft.schemas[self.stream]),)


@dataclass(frozen=True, slots=True)
class SetSource(SingleAction):
    """Read the records of `stream` from a topic."""

    kind = ObjectKind.STREAM
    stream: int
    source: StreamSource

    def apply_to(self, draft: TableDraft) -> None:
        """Set the source; assignments of the partitions of another one end."""
        for action in self._ending(draft):
            del draft.partitions[action.place]
        draft.sources[self.stream] = self.source

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present source and assignments; nothing for a stream without a source."""
        if self.stream not in draft.sources:
            return ()
        return (SetSource(self.stream, draft.sources[self.stream]), *self._ending(draft))

    def _ending(self, draft: TableDraft) -> list[AssignPartition]:
        present = draft.sources.get(self.stream)
        is_same = present is None or present.identity == self.source.identity
        return [] if is_same else assignments_of(draft, self.stream)


# The actions about a stream that must be in the table.
OF_STREAM: Final = (AssignStream, AssignPartition, SetSchema, SetSource)


@dataclass(frozen=True, slots=True)
class SetCapacity(SingleAction):
    """Set the declared capacity of `node` (records/s), and whether the node is limited to it."""

    kind = ObjectKind.NODE
    node: int
    capacity: float
    emulated: bool

    def apply_to(self, draft: TableDraft) -> None:
        """Set the capacity."""
        known = draft.nodes.get(self.node, NodeState(self.capacity))
        draft.nodes[self.node] = replace(known, capacity=self.capacity, emulated=self.emulated)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present capacity."""
        if self.node not in draft.nodes:
            return ()
        present = draft.nodes[self.node]
        return (SetCapacity(self.node, present.capacity, present.emulated),)


@dataclass(frozen=True, slots=True)
class SetNodeActive(SingleAction):
    """Activate or deactivate `node`: planners assign no work to an inactive node."""

    kind = ObjectKind.NODE
    node: int
    active: bool

    def apply_to(self, draft: TableDraft) -> None:
        """Set whether the node is active."""
        draft.nodes[self.node] = replace(draft.node(self.node), active=self.active)

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present state."""
        return (SetNodeActive(self.node, draft.node(self.node).active),)


@dataclass(frozen=True, slots=True)
class SetNodeCount(SingleAction):
    """Give the cluster nodes 0 to nodes - 1; nodes that are new have `capacity` records/s.

    Tasks and aggregators of a node that is removed must have moved before.
    """

    kind = ObjectKind.CLUSTER
    nodes: int
    capacity: float = 0.0

    def apply_to(self, draft: TableDraft) -> None:
        """Remove the nodes from `nodes` on, add those that are missing."""
        draft.node_count = self.nodes
        for index in [index for index in draft.nodes if index >= self.nodes]:
            del draft.nodes[index]
        if self.capacity:
            for index in range(self.nodes):
                draft.nodes.setdefault(index, NodeState(self.capacity))

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present number of nodes, with the states of the removed ones."""
        actions: list[Action] = []
        for index in sorted(index for index in draft.nodes if index >= self.nodes):
            state = draft.nodes[index]
            actions.append(SetCapacity(index, state.capacity, state.emulated))
            if not state.active:
                actions.append(SetNodeActive(index, active=False))
        capacity = max((state.capacity for state in draft.nodes.values()), default=0.0)
        return (SetNodeCount(draft.node_count, capacity), *actions)


@dataclass(frozen=True, slots=True)
class SetSplitCount(SingleAction):
    """Give the cluster split nodes 0 to splits - 1; what a removed one reads moved before."""

    kind = ObjectKind.CLUSTER
    splits: int

    def apply_to(self, draft: TableDraft) -> None:
        """Set the number of split nodes."""
        draft.split_count = self.splits

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present number of split nodes."""
        return (SetSplitCount(draft.split_count),)


@dataclass(frozen=True, slots=True)
class SetSplitCapacity(SingleAction):
    """Set the capacity of every split node (records/s), and whether each is limited to it.

    A capacity of 0 is not declared: telemetry measures it. It limits nothing.
    """

    kind = ObjectKind.CLUSTER
    capacity: float
    emulated: bool

    def apply_to(self, draft: TableDraft) -> None:
        """Set the capacity."""
        draft.split_capacity = self.capacity
        draft.split_emulated = self.emulated

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present capacity."""
        return (SetSplitCapacity(draft.split_capacity, draft.split_emulated),)


@dataclass(frozen=True, slots=True)
class SetDropRule:
    """Drop records on an edge: the input edge of `stream`, or its edge to `query`; None: none."""

    stream: int
    query: int = INPUT
    rule: DropRule | None = None

    def apply_to(self, draft: TableDraft) -> None:
        """Set or clear the drop rule."""
        if self.rule is None:
            draft.drop_rules.pop((self.stream, self.query), None)
            return
        self.rule.check()
        draft.drop_rules[self.stream, self.query] = self.rule

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present drop rule of the edge, or that there is none."""
        edge = self.stream, self.query
        return (SetDropRule(*edge, draft.drop_rules.get(edge)),)

    def subjects(self) -> tuple[ActionObject, ...]:
        """Return the edge."""
        return (ActionObject(ObjectKind.EDGE, self.stream, self.query),)


@dataclass(frozen=True, slots=True)
class SetLadder(SingleAction):
    """Arm a ladder of drop rules in place of the present ladder; None: disarm it."""

    kind = ObjectKind.CLUSTER
    ladder: Ladder | None = None

    def apply_to(self, draft: TableDraft) -> None:
        """Set or clear the ladder."""
        if self.ladder is not None:
            self.ladder.check()
        draft.ladder = self.ladder

    def inverse(self, draft: TableDraft) -> tuple[Action, ...]:
        """Return the present ladder, or that there is none."""
        return (SetLadder(draft.ladder),)
