"""The backlog of a node with an emulated capacity: records in their order of arrival.

A record was routed to the node for the tasks that it had then. If one of them moves, its backlog
moves with it, and tasks that the node gets later do not process it. So each piece of the queue has
the tasks that process its records, how many the query had, and the column with the task of each.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from workers.pipeline.engine.assignment.subscriptions import TaskOwnership
from workers.pipeline.engine.assignment.tasks import Task
from workers.pipeline.engine.evaluation.records import is_task_column, task_column
from workers.pipeline.engine.store import Store
from workers.pipeline.exchange.envelope import Envelope

BACKLOG: Final = "waiting"
# Pairs of the time and the number of waiting records in a report.
MOST_AGES: Final = 60
AssignedTasks = Mapping[int, TaskOwnership]


@dataclass
class _Piece:
    """An envelope in the store: its records, how many of them are processed, and their tasks.

    `forwarded`: whether it was forwarded, so that its records may be older than what the node has
    seen. `appended_ms`: when its newest record was appended to the log.
    """

    number: int
    taken: int
    records: int
    tasks: str
    forwarded: bool
    appended_ms: int

    @property
    def name(self) -> str:
        return f"{BACKLOG}/{self.number}"


@dataclass(frozen=True)
class WorkItem:
    """Envelopes to work on now, for these tasks; None: for all that the node has."""

    envelopes: list[Envelope]
    tasks: AssignedTasks | None


@dataclass
class _State:
    pieces: list[_Piece] = field(default_factory=list)
    tasks: dict[str, AssignedTasks] = field(default_factory=dict)
    # What is left of a record's worth of budget.
    credit: float = 0.0
    number: int = 0


class NodeBacklog:
    """The backlog of one node; `save` writes the changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._state = _read(store.get(BACKLOG))
        self._before = _written(self._state)

    @property
    def records(self) -> int:
        """Return how many records wait."""
        return sum(piece.records - piece.taken for piece in self._state.pieces)

    def waiting_since(self) -> list[list[int]]:
        """Return [appended ms, records] pairs of the records that wait, at most `MOST_AGES`.

        Each time is that of the newest record of a part of the queue: its records wait at least
        since then.
        """
        pieces = [
            (piece.appended_ms, piece.records - piece.taken)
            for piece in self._state.pieces
            if piece.appended_ms and piece.records > piece.taken
        ]
        step = -(-len(pieces) // MOST_AGES) or 1
        groups = [pieces[first : first + step] for first in range(0, len(pieces), step)]
        return [[max(ms for ms, _ in group), sum(n for _, n in group)] for group in groups]

    @property
    def has_forwarded(self) -> bool:
        """Return whether forwarded records wait: no window may be closed before they are taken."""
        return any(piece.forwarded for piece in self._state.pieces)

    def __bool__(self) -> bool:
        return bool(self._state.pieces)

    def budget(self, per_s: float, elapsed_ms: float) -> int:
        """Return how many records the node may take after so much time; fractions add up."""
        self._state.credit += per_s * elapsed_ms / 1000
        whole = int(self._state.credit)
        self._state.credit -= whole
        return whole

    def append(self, envelopes: Iterable[Envelope], tasks: AssignedTasks) -> None:
        """Append envelopes at the end, except empty ones without event times."""
        result = [envelope for envelope in envelopes if envelope.streams]
        self._state.pieces += [self._kept(item.encode(), item, tasks) for item in result]

    def prepend(self, exported: Mapping[str, bytes], task: Task, incarnation: int) -> None:
        """Put envelopes that another node exported for a task before all others."""
        column = task_column(task[0])
        pieces = []
        # Redis returns them in any order.
        for name in sorted(exported, key=_place_of):
            item = exported[name]
            envelope = Envelope.decode(item)
            count, routed = _routing_of(name)
            held = TaskOwnership(
                incarnation, [task[1]] * len(routed), column if column in envelope.extras else "",
                count, () if routed == [task[1]] else routed,
            )  # fmt: skip
            pieces.append(self._kept(item, envelope, {task[0]: held}, forwarded=True))
        self._state.pieces = pieces + self._state.pieces

    def take(self, budget: int | None) -> list[WorkItem]:
        """Take records from the front, at most so many; None takes all."""
        result: list[tuple[str, Envelope]] = []
        left = self.records if budget is None else budget
        while self._state.pieces:
            piece = self._state.pieces[0]
            stop = min(piece.records, piece.taken + left)
            envelope = self._read(piece)
            left -= stop - piece.taken
            result.append((piece.tasks, envelope.slice(piece.taken, stop)))
            piece.taken = stop
            if stop < piece.records:
                break
            self._state.pieces.remove(piece)
            self._store.remove(piece.name)
        return self._group_by_tasks(result)

    def export(self, task: Task, streams: Sequence[int]) -> dict[str, bytes]:
        """Take the backlog of a task out: envelopes of its streams by name, oldest first."""
        query, number = task
        result: dict[str, bytes] = {}
        for piece in self._state.pieces:
            held = self._state.tasks[piece.tasks].get(query)
            if held is None or number not in held.tasks:
                continue
            envelope = self._read(piece).slice(piece.taken, piece.records)
            if (part := envelope.of_streams(streams)).streams:
                name = _exported_name(len(result), held, number)
                result[name] = _with_own_tasks(part, query, held.column).encode()
            self._disown(piece, task, held)
        return result

    def _disown(self, piece: _Piece, task: Task, held: TaskOwnership) -> None:
        """Let a piece no longer be for a task, should the task return to this node."""
        tasks = dict(self._state.tasks[piece.tasks])
        left = held.without(task[1])
        if left is None:
            del tasks[task[0]]
        else:
            tasks[task[0]] = left
        piece.tasks = self._known(tasks)

    def save(self) -> None:
        """Write the backlog if it has changed."""
        used = {piece.tasks for piece in self._state.pieces}
        self._state.tasks = {k: tasks for k, tasks in self._state.tasks.items() if k in used}
        written = _written(self._state)
        if written != self._before:
            self._store.put(BACKLOG, written)

    def _group_by_tasks(self, envelopes: Sequence[tuple[str, Envelope]]) -> list[WorkItem]:
        items: list[tuple[str, WorkItem]] = []
        for tasks, envelope in envelopes:
            if not items or items[-1][0] != tasks:
                items.append((tasks, WorkItem([], self._state.tasks[tasks])))
            items[-1][1].envelopes.append(envelope)
        return [work for _, work in items]

    def _kept(
        self, data: bytes, envelope: Envelope, tasks: AssignedTasks, *, forwarded: bool = False
    ) -> _Piece:
        """Store the bytes of an envelope and return its piece."""
        self._state.number += 1
        records = envelope.records.num_rows
        newest = max(envelope.appended_ms, default=0)
        piece = _Piece(self._state.number, 0, records, self._known(tasks), forwarded, newest)
        self._store.put(piece.name, data)
        return piece

    def _known(self, tasks: AssignedTasks) -> str:
        """Return the text of tasks, under which the state has them."""
        text = json.dumps(tasks, sort_keys=True)
        self._state.tasks.setdefault(text, tasks)
        return text

    def _read(self, piece: _Piece) -> Envelope:
        data = self._store.get(piece.name)
        assert data is not None, f"{piece.name} is in the queue and not in the store"
        return Envelope.decode(data)


def _with_own_tasks(envelope: Envelope, query: int, column: str) -> Envelope:
    """Return an envelope with the tasks of one query only, in the query's own column.

    `column`: the one that they are in, which queries of one key grouping share; empty for none.
    """
    extras = {name: v for name, v in envelope.extras.items() if not is_task_column(name)}
    if column in envelope.extras:
        extras[task_column(query)] = envelope.extras[column]
    return replace(envelope, extras=extras)


def _exported_name(index: int, held: TaskOwnership, task: int) -> str:
    """Return the name of an exported envelope: its number, and how its records were routed."""
    return f"{BACKLOG}{index}:{json.dumps([held.routed_count, *held.routed_to(task)])}"


def _place_of(name: str) -> int:
    """Return the place of an exported envelope among those of its task."""
    return int(name.removeprefix(BACKLOG).partition(":")[0])


def _routing_of(name: str) -> tuple[int, list[int]]:
    """Return how many tasks there were, and the tasks that an envelope's records were routed to."""
    _, _, routing = name.partition(":")
    count, *routed = json.loads(routing)
    return count, routed


def _written(state: _State) -> bytes:
    numbers = {text: index for index, text in enumerate(state.tasks)}
    pieces = [
        [p.number, p.taken, p.records, numbers[p.tasks], p.forwarded, p.appended_ms]
        for p in state.pieces
    ]
    row = [list(state.tasks), pieces, state.credit, state.number]
    return json.dumps(row, separators=(",", ":")).encode()


def _read(data: bytes | None) -> _State:
    if data is None:
        return _State()
    texts, pieces, credit, number = json.loads(data)
    tasks = {text: _owned(json.loads(text)) for text in texts}
    kept = [_Piece(n, taken, records, texts[i], *rest) for n, taken, records, i, *rest in pieces]
    return _State(kept, tasks, credit, number)


def _owned(row: Mapping[str, Any]) -> AssignedTasks:
    return {int(query): TaskOwnership(*held) for query, held in row.items()}
