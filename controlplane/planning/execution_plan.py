"""How a plan is executed: the order of its actions, its steps, its cost, and its rollback."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from algorithms.ordering import order_moves
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import IMBALANCE
from controlplane.plans.plan import PlannedAction, task_moves
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing import CLUSTER, Kind, Subject


@dataclass(frozen=True)
class StepLimits:
    """Bounds of one step: moves that a node takes part in, actions; bytes of state per second.

    A step has one action at least, whatever its size.
    """

    node_moves: int
    cluster_moves: int
    bytes_per_s: float


@dataclass(frozen=True)
class ExecutionCost:
    """What executing actions takes.

    `actions`, and `moves` of tasks among them; `bytes` of state; `pause_ms`: how long a task that
    moves pauses; `seconds`: from the first step to the end of the last.
    """

    actions: int
    moves: int
    bytes: int
    steps: int
    pause_ms: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the cost as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Ordered:
    """A plan in the order of its execution; `imbalance`: after each action.

    `safe`: whether no node is worse loaded on the way than the worst one at the start.
    """

    plan: list[PlannedAction]
    imbalance: list[float]
    safe: bool


def in_order(snapshot: ClusterSnapshot, plan: Sequence[PlannedAction]) -> Ordered:
    """Return the plan in an order in which operators can stop anywhere.

    Consecutive moves are ordered (`algorithms.ordering`); actions of other kinds keep their places
    between them, and the imbalance after a group of these counts for each of the group.
    """
    model = LoadModel.of(snapshot)
    ordered: list[PlannedAction] = []
    imbalance: list[float] = []
    safe = True
    for are_moves, group in groupby(plan, key=lambda planned: planned.task_move is not None):
        chosen = list(group)
        if are_moves:
            order = order_moves(model.move_set(task_moves(chosen)))
            ordered += [chosen[place] for place in order.order]
            imbalance += np.round(order.imbalance, 6).tolist()
            safe = safe and order.safe
        model = model.after(chosen)
        if not are_moves:
            ordered += chosen
            after = round(IMBALANCE.compute(snapshot, model, ()), 6)
            imbalance += [after] * len(chosen)
    return Ordered(ordered, imbalance, safe)


def allowed(snapshot: ClusterSnapshot, plan: Iterable[PlannedAction]) -> list[PlannedAction]:
    """Return the actions that no exclusion forbids."""
    excluded = {(kind, subject) for kind, subject in snapshot.excluded}
    if not excluded:
        return list(plan)
    names = {node.index: node.name for node in snapshot.nodes}
    queries = {query.id: query.name for query in snapshot.queries}
    queries |= {query.id: query.name for query in snapshot.split}
    streams = {query: read for query, _, _, read in snapshot.queries}

    def forbidden(subject: Subject) -> bool:
        if subject.kind == Kind.NODE:
            return ("node", names.get(subject.id)) in excluded
        if subject.kind == Kind.QUERY:
            read = streams.get(subject.id, ())
            return ("query", queries.get(subject.id)) in excluded or any(
                ("stream", stream) in excluded for stream in read
            )
        if subject.kind == Kind.EDGE and ("query", queries.get(subject.query)) in excluded:
            return True
        return subject.kind in (Kind.STREAM, Kind.EDGE) and ("stream", subject.id) in excluded

    return [planned for planned in plan if not any(map(forbidden, concerned(planned)))]


def concerned(planned: PlannedAction) -> list[Subject]:
    """Return the objects that an action changes, and the nodes that a move leaves and enters."""
    subjects = list(planned.action.subjects())
    move = planned.task_move
    if move is not None:
        subjects += [Subject(Kind.NODE, node) for node in (move.source, move.target)]
    return subjects


def next_step(plan: Sequence[PlannedAction], limits: StepLimits, seconds: float) -> int:
    """Return how many of the first actions make up one step: as many as the limits allow.

    `seconds`: how long a step takes, within which its bytes must arrive.
    """
    # No step has more actions than the limit.
    sizes = list(map(_Size.of, plan[: limits.cluster_moves + 1]))
    return _step_stop(sizes, 0, limits, seconds)


@dataclass(frozen=True, slots=True)
class _Size:
    """What decides whether an action fits into a step.

    `own`: objects that no other action of the step may change; `query`: that of a move, of which
    other tasks may move in the step; `nodes`: that a move leaves and enters.
    """

    own: tuple[object, ...]
    bytes: int = 0
    query: Subject | None = None
    nodes: tuple[int, ...] = ()

    @classmethod
    def of(cls, planned: PlannedAction) -> "_Size":
        move = planned.task_move
        if move is None:
            return cls(planned.action.subjects())
        (query,) = planned.action.subjects()
        task, nodes = (move.query, move.task), (move.source, move.target)
        return cls((task,), move.bytes, query, nodes)

    @property
    def alone(self) -> bool:
        """Return whether the action takes a step of its own: it changes the whole cluster."""
        return CLUSTER in self.own


class _Step:
    """The actions that a step has so far."""

    def __init__(self, limits: StepLimits, seconds: float) -> None:
        self._limits = limits
        self._most_bytes = limits.bytes_per_s * seconds
        self._count = self._bytes = 0
        self._busy: dict[int, int] = {}
        self._changed: set[object] = set()
        self._moved: set[object] = set()

    def fits(self, size: _Size) -> bool:
        """Return whether the step may have one more action; the first always fits."""
        limits = self._limits
        return not self._count or not (
            self._count >= limits.cluster_moves
            or self._bytes + size.bytes > self._most_bytes
            or any(self._busy.get(node, 0) >= limits.node_moves for node in size.nodes)
            or size.alone
            or CLUSTER in self._changed
            or size.query in self._changed
            or not self._changed.isdisjoint(size.own)
            or not self._moved.isdisjoint(size.own)
        )

    def add(self, size: _Size) -> None:
        """Add an action."""
        self._count += 1
        self._bytes += size.bytes
        self._changed.update(size.own)
        if size.query is not None:
            self._moved.add(size.query)
        for node in size.nodes:
            self._busy[node] = self._busy.get(node, 0) + 1


def _step_stop(sizes: Sequence[_Size], first: int, limits: StepLimits, seconds: float) -> int:
    """Return where the step that starts at `first` stops."""
    step = _Step(limits, seconds)
    for place in range(first, len(sizes)):
        if not step.fits(sizes[place]):
            return place
        step.add(sizes[place])
    return len(sizes)


def first_cap(most: int) -> int:
    """Return how many actions the first step may have, if the policy allows `most` per step."""
    return max(1, most // 4)


def estimate_cost(
    plan: Iterable[PlannedAction], limits: StepLimits, step_s: float
) -> ExecutionCost:
    """Return what executing the actions takes if a step takes `step_s` seconds and none is slow.

    The first step has few actions, and each step one more than the one before.
    """
    sizes = [_Size.of(planned) for planned in plan]
    steps, place, cap = 0, 0, first_cap(limits.cluster_moves)
    while place < len(sizes):
        place = _step_stop(sizes, place, replace(limits, cluster_moves=cap), step_s)
        steps, cap = steps + 1, min(cap + 1, limits.cluster_moves)
    sent, moves = sum(size.bytes for size in sizes), sum(bool(size.nodes) for size in sizes)
    return ExecutionCost(
        actions=len(sizes),
        moves=moves,
        bytes=sent,
        steps=steps,
        # A task's records of one batch meet its state where it was, those of the next where it is.
        pause_ms=round(step_s * 1000) if moves else 0,
        seconds=round(max(steps * step_s, sent / limits.bytes_per_s), 1),
    )


def rollback(plan: Sequence[PlannedAction]) -> list[PlannedAction]:
    """Return the actions that revert a plan, the last first."""
    return [
        PlannedAction(before, (planned.action,), planned.bytes)
        for planned in reversed(plan)
        for before in planned.before
    ]
