"""Plans: actions in their order, each with what it replaces and the state that it moves.

A plan is stored as a list of rows, `seal_of` seals its actions. Plans of large clusters are moves
of single tasks, a hundred thousand of them: a move is a tuple, and its row a list of numbers.
Nothing here imports Django.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, overload

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
    SetTaskCount,
    action_from_json,
    action_to_json,
    kind_of,
)

# A stored action: [query, task, source, target, bytes] of a `TaskMove`, `to_json` of the others.
Row = list[int] | Mapping[str, Any]
# The kinds of actions that a plan may have; people start, stop and change queries themselves.
PLANNABLE: Final = (
    MoveTasks, AssignStream, SetDropRule, SetKeyGrouping, SetAggregator, SetTaskCount, SetCapacity,
    SetNodeActive, SetNodeCount, SetSplitCount,
)  # fmt: skip


class TaskMove(NamedTuple):
    """The action that moves a task with its state from node `source` to node `target` (indices).

    `bytes`: the state that moves, as last measured.
    """

    query: int
    task: int
    source: int
    target: int
    bytes: int = 0

    @property
    def action(self) -> MoveTasks:
        """Return the move as an action on a routing table."""
        return MoveTasks(self.query, ((self.target, self.task, self.task + 1),))

    @property
    def before(self) -> tuple[Action, ...]:
        """Return the move back."""
        return (MoveTasks(self.query, ((self.source, self.task, self.task + 1),)),)

    def row(self) -> Row:
        """Return the row that a proposal stores."""
        return list(self)

    def action_json(self) -> dict[str, Any]:
        """Return `action_to_json` of the action, which is not created."""
        query, task, _, target, _ = self
        return {"op": "move_tasks", "query": query, "moves": [[target, task, task + 1]]}

    def canonical_action(self) -> str:
        """Return the canonical JSON of the action; to seal a large plan takes most of its time."""
        query, task, _, target, _ = self
        return f'{{"moves":[[{target},{task},{task + 1}]],"op":"move_tasks","query":{query}}}'


@dataclass(frozen=True, slots=True)
class OtherAction:
    """An action of a plan that is not the move of one task.

    `before`: the actions that restore what it replaces when all earlier actions of the plan are
    applied to the snapshot; empty if it replaces nothing. `bytes`: the state that moves.
    """

    action: Action
    before: tuple[Action, ...]
    bytes: int = 0

    def row(self) -> Row:
        """Return the row that a proposal stores."""
        return to_json(self)

    def action_json(self) -> dict[str, Any]:
        """Return the action as JSON values."""
        return action_to_json(self.action)

    def canonical_action(self) -> str:
        """Return the canonical JSON of the action."""
        return canonical(self.action_json())


PlannedAction = TaskMove | OtherAction


def planned_action(action: Action, before: tuple[Action, ...], size: int = 0) -> PlannedAction:
    """Return an action of a plan; the move of one task from a known node is a `TaskMove`."""
    back = before[0] if len(before) == 1 else None
    if isinstance(action, MoveTasks) and isinstance(back, MoveTasks) and len(action.moves) == 1:
        (target, task, stop), (source, *_) = action.moves[0], back.moves[0]
        if stop - task == 1:
            return TaskMove(action.query, task, source, target, size)
    return OtherAction(action, before, size)


def to_json(planned: PlannedAction) -> dict[str, Any]:
    """Return a planned action as JSON values: the action, what it replaces, and its bytes."""
    return {
        "action": planned.action_json(),
        "before": [action_to_json(action) for action in planned.before],
        "bytes": planned.bytes,
    }


def _from_row(row: Row) -> PlannedAction:
    # Of a hundred thousand rows nearly all are lists, which JSON has no other kind of.
    if isinstance(row, list):
        return TaskMove._make(row)
    # An earlier release stored moves of tasks in this form, too.
    before = tuple(action_from_json(action) for action in row["before"])
    return planned_action(action_from_json(row["action"]), before, row["bytes"])


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
        return _from_row(self._rows[place])

    def of_kinds(self, *kinds: str) -> list[PlannedAction]:
        """Return the actions of these kinds (`kind_of`), in their order."""
        return [planned for planned in self if kind_of(planned.action) in kinds]

    def __iter__(self) -> Iterator[PlannedAction]:
        return map(_from_row, self._rows)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the planned actions as JSON values."""
        return list(map(to_json, self))


def rows_of(plan: Iterable[PlannedAction]) -> list[Row]:
    """Return the rows that a proposal stores of a plan."""
    return [planned.row() for planned in plan]


def seal_of(plan: Iterable[PlannedAction], digest: str) -> str:
    """Return the sha256 in hex of the canonical JSON of the actions and a snapshot's digest."""
    actions = ",".join(planned.canonical_action() for planned in plan)
    return digest_of(f'{{"actions":[{actions}],"snapshot":{canonical(digest)}}}')


def task_moves(plan: Iterable[PlannedAction]) -> list[TaskMove]:
    """Return the moves of tasks among the actions, in their order."""
    return [planned for planned in plan if isinstance(planned, TaskMove)]
