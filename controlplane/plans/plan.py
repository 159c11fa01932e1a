"""Plans: actions in their order, each with what it replaces and the state that it moves.

A plan is stored as a list of rows; `seal_of` seals its actions. Nothing here imports Django.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, overload

from controlplane.plans.snapshot import canonical, digest_of
from controlplane.wire.routing import (
    Action,
    AssignStream,
    MoveTasks,
    SetAggregator,
    SetCapacity,
    SetDropRule,
    SetKeyGrouping,
    SetNodeActive,
    SetNodeCount,
    SetSplitCount,
    action_from_json,
    action_to_json,
)

Row = Mapping[str, Any]
# The kinds of actions that a plan may have; people start, stop and change queries themselves.
PLANNABLE: Final = (
    MoveTasks, AssignStream, SetDropRule, SetKeyGrouping, SetAggregator, SetCapacity,
    SetNodeActive, SetNodeCount, SetSplitCount,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """An action of a plan. A `MoveTasks` of a plan moves one task.

    `before`: the actions that restore what it replaces when all earlier actions of the plan are
    applied to the snapshot; empty if it replaces nothing. `bytes`: the state that moves, as last
    measured.
    """

    action: Action
    before: tuple[Action, ...]
    bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the planned action as JSON values."""
        return {
            "action": action_to_json(self.action),
            "before": [action_to_json(action) for action in self.before],
            "bytes": self.bytes,
        }

    @classmethod
    def from_json(cls, row: Row) -> "PlannedAction":
        """Return the planned action that `to_json` wrote."""
        before = tuple(action_from_json(action) for action in row["before"])
        return cls(action_from_json(row["action"]), before, row["bytes"])

    @property
    def task_move(self) -> "TaskMove | None":
        """Return the move of a task, None for an action of another kind."""
        if not isinstance(self.action, MoveTasks) or not isinstance(self.before[0], MoveTasks):
            return None
        ((target, task, _),) = self.action.moves
        return TaskMove(self.action.query, task, self.before[0].moves[0][0], target, self.bytes)


@dataclass(frozen=True, slots=True)
class TaskMove:
    """A task that moves with its state from node `source` to node `target` (indices)."""

    query: int
    task: int
    source: int
    target: int
    bytes: int

    def planned(self) -> PlannedAction:
        """Return the move as an action of a plan."""
        span = self.task, self.task + 1
        return PlannedAction(
            MoveTasks(self.query, ((self.target, *span),)),
            (MoveTasks(self.query, ((self.source, *span),)),),
            self.bytes,
        )


class Plan(Sequence[PlannedAction]):
    """The planned actions of stored rows; a row is decoded when it is read."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> PlannedAction: ...

    @overload
    def __getitem__(self, place: slice) -> "Plan": ...

    def __getitem__(self, place: int | slice) -> "PlannedAction | Plan":
        if isinstance(place, slice):
            return Plan(self._rows[place])
        return PlannedAction.from_json(self._rows[place])

    def of_kinds(self, *kinds: str) -> "Plan":
        """Return the actions of these kinds (`kind_of`), in their order."""
        return Plan([row for row in self._rows if row["action"]["op"] in kinds])

    def __iter__(self) -> Iterator[PlannedAction]:
        return map(PlannedAction.from_json, self._rows)


def rows_of(plan: Iterable[PlannedAction]) -> list[dict[str, Any]]:
    """Return the rows that a proposal stores of a plan."""
    return [planned.to_json() for planned in plan]


def seal_of(rows: Iterable[Row], digest: str) -> str:
    """Return the sha256 in hex of the actions of stored rows in order, and a snapshot's digest."""
    actions = [row["action"] for row in rows]
    return digest_of(canonical({"actions": actions, "snapshot": digest}))


def task_moves(plan: Iterable[PlannedAction]) -> list[TaskMove]:
    """Return the moves of tasks among the actions, in their order."""
    return [move for planned in plan if (move := planned.task_move) is not None]
