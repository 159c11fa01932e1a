"""The backlog of a node with an emulated capacity: records in their order of arrival.

A record was routed to the node for the tasks that it had then. If one of them moves, its backlog
moves with it, and tasks that the node gets later do not process it. So each piece of the queue has
the tasks that process its records, how many the query had, and the column with the task of each.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

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


class ArrivingTask(NamedTuple):
    """A task that moves here, with what another node exported for it.

    `incarnation`: that of its query, None if the query has failed here: nothing of it is processed.
    """

    task: Task
    exported: Mapping[str, bytes]
    incarnation: int | None


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

    def prepend(self, arriving: Iterable[ArrivingTask]) -> None:
        """Put the envelopes that one other node exported for tasks before all others.

        An envelope that several of the tasks need is one piece of the queue.
        """
        data: dict[int, bytes] = {}
        tasks: dict[int, dict[int, TaskOwnership]] = {}
        for item in arriving:
            query, number = item.task
            for name, encoded in item.exported.items():
                part = _ExportedPart.parse(name)
                data[part.place] = encoded or data.get(part.place, b"")
                if item.incarnation is not None:
                    own, held = (
                        tasks.setdefault(part.place, {}),
                        part.held(item.incarnation, number),
                    )
                    own[query] = own[query].joined(held) if query in own else held
        # Redis returns them in any order.
        pieces = [self._forwarded(data[place], tasks[place]) for place in sorted(tasks)]
        self._state.pieces = pieces + self._state.pieces

    def _forwarded(self, data: bytes, tasks: Mapping[int, TaskOwnership]) -> _Piece:
        envelope = Envelope.decode(data)
        held_here = {
            query: held._replace(column=column) if column in envelope.extras else held
            for query, held in tasks.items()
            for column in [task_column(query)]
        }
        return self._kept(data, envelope, held_here, forwarded=True)

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
            self._remove(piece)
        return self._group_by_tasks(result)

    def export(self, leaving: Mapping[Task, Sequence[int]]) -> dict[Task, dict[str, bytes]]:
        """Take out the backlog of tasks that move to one other node: envelopes by name.

        `leaving`: the streams of each task. An envelope has what all of them need, and is with the
        first of the tasks that need it; the others have its name with no bytes. Records that no
        task needs any longer leave the queue.
        """
        result: dict[Task, dict[str, bytes]] = {task: {} for task in leaving}
        for place, piece in enumerate(list(self._state.pieces)):
            held = self._held(piece, leaving)
            if not held:
                continue
            envelope = self._read(piece).slice(piece.taken, piece.records)
            needed = envelope.of_streams(sorted({s for task in held for s in leaving[task]}))
            data = _with_own_tasks(needed, held).encode()
            for (query, number), own in held.items():
                part = envelope.of_streams(leaving[query, number])
                if part.streams:
                    name = _ExportedPart.of(place, part.records.num_rows, own, number).name
                    result[query, number][name] = data
                    data = b""
            self._disown(piece, held)
        return result

    def _held(self, piece: _Piece, tasks: Iterable[Task]) -> dict[Task, TaskOwnership]:
        """Return those of some tasks that a piece of the queue is for."""
        assigned = self._state.tasks[piece.tasks]
        held = {(query, number): assigned.get(query) for query, number in tasks}
        return {task: own for task, own in held.items() if own and task[1] in own.tasks}

    def _disown(self, piece: _Piece, tasks: Iterable[Task]) -> None:
        """Let a piece no longer be for tasks, should they return to this node."""
        assigned = dict(self._state.tasks[piece.tasks])
        for query, number in tasks:
            left = assigned.pop(query).without(number)
            if left is not None:
                assigned[query] = left
        if assigned:
            piece.tasks = self._known(assigned)
        else:
            self._remove(piece)

    def _remove(self, piece: _Piece) -> None:
        self._state.pieces.remove(piece)
        self._store.remove(piece.name)

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


def _with_own_tasks(envelope: Envelope, held: Mapping[Task, TaskOwnership]) -> Envelope:
    """Return an envelope with the tasks of these queries only, each in the query's own column.

    Queries of one key grouping share the column that they are in here.
    """
    extras = {name: v for name, v in envelope.extras.items() if not is_task_column(name)}
    for (query, _), own in held.items():
        if own.column in envelope.extras:
            extras[task_column(query)] = envelope.extras[own.column]
    return replace(envelope, extras=extras)


@dataclass(frozen=True)
class _ExportedPart:
    """What the name of an exported envelope has about the task that it is exported with.

    `place`: the envelope's place in the queue; `records`: how many of them are of the task's
    streams; `routed_count`: how many tasks there were when they were routed, `routed`: to which.
    """

    place: int
    records: int
    routed_count: int
    routed: Sequence[int]

    @classmethod
    def of(cls, place: int, records: int, held: TaskOwnership, task: int) -> "_ExportedPart":
        return cls(place, records, held.routed_count, held.routed_to(task))

    @classmethod
    def parse(cls, name: str) -> "_ExportedPart":
        place, records, count, *routed = json.loads(name.removeprefix(BACKLOG))
        return cls(place, records, count, routed)

    @property
    def name(self) -> str:
        return BACKLOG + json.dumps([self.place, self.records, self.routed_count, *self.routed])

    def held(self, incarnation: int, task: int) -> TaskOwnership:
        """Return the ownership of the task that processes these records now."""
        routed = () if list(self.routed) == [task] else list(self.routed)
        return TaskOwnership(incarnation, [task] * len(self.routed), "", self.routed_count, routed)


def records_exported(names: Iterable[str]) -> int:
    """Return how many records wait for a task with exports of these names."""
    return sum(_ExportedPart.parse(name).records for name in names if name.startswith(BACKLOG))


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
