"""Plans: ordered actions with the values that they replace and the state that they move.

A plan is stored as a list of rows; `seal_of` seals its actions. Large plans have a hundred thousand
moves of single tasks, so a move is a tuple, and its row a list of numbers.
Nothing here imports Django.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, overload

from controlplane.plans.snapshot import canonical, digest_of
from controlplane.wire.routing.action_json import action_from_json, action_to_json, kind_of
from controlplane.wire.routing.actions import Action
from controlplane.wire.routing.cluster_actions import (
    AssignPartition,
    AssignStream,
    SetCapacity,
    SetDropRule,
    SetLadder,
    SetNodeActive,
    SetNodeCount,
    SetSplitCapacity,
    SetSplitCount,
)
from controlplane.wire.routing.query_actions import (
    MoveTasks,
    SetAggregator,
    SetAggregators,
    SetKeyGrouping,
    SetTaskCount,
)

# A stored action: [query, task, source, target, bytes] of a `TaskMove`, `to_json` of the others.
Row = list[int] | Mapping[str, Any]
# The kinds of actions that a plan may have; only people start, stop and change queries.
PLANNABLE: Final = (
    MoveTasks, AssignStream, AssignPartition, SetDropRule, SetKeyGrouping, SetAggregator,
    SetAggregators, SetTaskCount, SetCapacity, SetNodeActive, SetNodeCount, SetSplitCount,
    SetSplitCapacity, SetLadder,
)  # fmt: skip


class TaskMove(NamedTuple):
    """A move of a task with its state from node `source` to node `target` (indices).

    `bytes`: the last measured size of the state.
    """

    query: int
    task: int
    source: int
    target: int
    bytes: int = 0

    @property
    def action(self) -> MoveTasks:
        """Return the move as an action on the routing table."""
        return MoveTasks(self.query, ((self.target, self.task, self.task + 1),))

    @property
    def before(self) -> tuple[Action, ...]:
        """Return the inverse move."""
        return (MoveTasks(self.query, ((self.source, self.task, self.task + 1),)),)

    def row(self) -> Row:
        """Return the row that a proposal stores."""
        return list(self)

    def action_json(self) -> dict[str, Any]:
        """Return the JSON of the action, without creating the action."""
        query, task, _, target, _ = self
        return {"op": "move_tasks", "query": query, "moves": [[target, task, task + 1]]}

    def canonical_action(self) -> str:
        """Return the canonical JSON of the action; sealing a large plan spends its time here."""
        query, task, _, target, _ = self
        return f'{{"moves":[[{target},{task},{task + 1}]],"op":"move_tasks","query":{query}}}'


@dataclass(frozen=True, slots=True)
class OtherAction:
    """An action of a plan other than the move of a single task.

    `before`: the actions that revert it when all earlier actions of the plan are applied to the
    snapshot; empty if it replaces nothing. `bytes`: the size of the moved state.
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
    """Return a planned action as JSON values: action, inverse actions, bytes."""
    return {
        "action": planned.action_json(),
        "before": [action_to_json(action) for action in planned.before],
        "bytes": planned.bytes,
    }


def _from_row(row: Row) -> PlannedAction:
    # Lists are the most frequent rows.
    if isinstance(row, list):
        return TaskMove._make(row)
    before = tuple(action_from_json(action) for action in row["before"])
    return OtherAction(action_from_json(row["action"]), before, row["bytes"])


class Plan(Sequence[PlannedAction]):
    """The planned actions of stored rows, decoded on access."""

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
