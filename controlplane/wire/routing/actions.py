"""The actions that change a routing table: their effects, their inverses, the objects they change.

Plans and every change of a cluster's topology are sequences of actions. An action is a value: it
travels as JSON (`action_json`), and applying it to equal tables gives equal tables.
"""

from enum import StrEnum
from typing import ClassVar, Final, NamedTuple, Protocol

from controlplane.wire.routing.draft import TableDraft


class Kind(StrEnum):
    """The kinds of objects that actions change."""

    QUERY = "query"
    STREAM = "stream"
    EDGE = "edge"
    NODE = "node"
    CLUSTER = "cluster"


class Subject(NamedTuple):
    """An object that an action changes: a query or stream by id, an edge by both, a node by index.

    Actions on different subjects can be applied in any order.
    """

    kind: Kind
    id: int = 0
    query: int = 0


CLUSTER: Final = Subject(Kind.CLUSTER)


class Action(Protocol):
    """A change of a routing table."""

    def apply_to(self, draft: TableDraft) -> None:
        """Change the draft. Raises `InconsistentDelta` if the action does not fit it."""

    def inverse(self, draft: TableDraft) -> "tuple[Action, ...]":
        """Return the actions that restore this draft once the action was applied to it."""

    def subjects(self) -> tuple[Subject, ...]:
        """Return the objects that the action changes."""


class SingleAction:
    """An action that changes one object: its id is in the field with the name of `kind`."""

    __slots__ = ()
    kind: ClassVar[Kind]

    def subjects(self) -> tuple[Subject, ...]:
        """Return the object that the action changes."""
        return (Subject(self.kind, getattr(self, self.kind, 0)),)
