"""Execution plans: order of actions, steps, cost and rollback.

Algorithms order and choose moves of units. There, a unit receives its sources completely. A stream
of which tasks of split queries read parts is therefore several sources: the part of each task that
moves, that of all others on each node, and what remains. Queries of one task read all of them, so a
node that reads the stream completely receives nothing more for its tasks. What remains is below 0
where queries read the same records; who reads it reads the parts as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, groupby

import numpy as np

from algorithms.ordering import MoveSet, WorkUnits, order_moves
from algorithms.ordering.steps import NONE, Footprints, StepBounds, step_stops
from algorithms.rows import group_positions, pick_rows
from algorithms.vocabulary import Floats, Ints
from controlplane.formats.json_values import JsonValue
from controlplane.planning.load_model import LoadModel
from controlplane.planning.measures import IMBALANCE
from controlplane.plans.plan import OtherAction, PlannedAction, TaskMove, task_moves
from controlplane.plans.snapshot import ClusterSnapshot
from controlplane.wire.routing.actions import CLUSTER, Action, ActionObject, ObjectKind
from controlplane.wire.routing.cluster_actions import AssignPartition


@dataclass(frozen=True)
class StepLimits:
    """Limits of a step: moves per node, actions, and bytes of state per second.

    A step has at least one action, whatever its size.
    """

    node_moves: int
    cluster_moves: int
    bytes_per_s: float


@dataclass(frozen=True)
class ExecutionCost(JsonValue):
    """The predicted cost of an execution.

    `actions`, of which `moves` of tasks; `bytes` of state; `pause_ms`: the pause of a moved task;
    `seconds`: from the first step to the end of the last one.
    """

    actions: int
    moves: int
    bytes: int
    steps: int
    pause_ms: int
    seconds: float


@dataclass(frozen=True)
class Ordered:
    """A plan in the order of its execution; `imbalance`: after each action.

    `safe`: whether the worst load never exceeds that at the start.
    """

    plan: list[PlannedAction]
    imbalance: list[float]
    safe: bool


def in_order(snapshot: ClusterSnapshot, plan: Sequence[PlannedAction]) -> Ordered:
    """Return the plan in an order in which an execution can stop at any step.

    Consecutive moves are ordered (`algorithms.ordering`); actions of other kinds keep their places,
    and each of a group of these has the imbalance after the group.
    """
    model = LoadModel.of(snapshot)
    ordered: list[PlannedAction] = []
    imbalance: list[float] = []
    safe = True
    for are_moves, group in groupby(plan, key=lambda planned: isinstance(planned, TaskMove)):
        chosen = list(group)
        if are_moves:
            order = order_moves(move_set(model, task_moves(chosen)))
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

    def forbidden(subject: ActionObject) -> bool:
        if subject.kind == ObjectKind.NODE:
            return ("node", names.get(subject.id)) in excluded
        if subject.kind == ObjectKind.QUERY:
            read = streams.get(subject.id, ())
            return ("query", queries.get(subject.id)) in excluded or any(
                ("stream", stream) in excluded for stream in read
            )
        if subject.kind == ObjectKind.EDGE and ("query", queries.get(subject.query)) in excluded:
            return True
        return (
            subject.kind in (ObjectKind.STREAM, ObjectKind.EDGE)
            and ("stream", subject.id) in excluded
        )

    return [
        planned
        for planned in plan
        if _keeps(snapshot, planned.action) or not any(map(forbidden, concerned(planned)))
    ]


def _keeps(snapshot: ClusterSnapshot, action: Action) -> bool:
    """Return whether a partition keeps its split node while the number of split nodes changes."""
    if not isinstance(action, AssignPartition):
        return False
    return action.split == snapshot.assignment.of(*action.place)


def concerned(planned: PlannedAction) -> list[ActionObject]:
    """Return the objects that an action changes, with source and target of a move."""
    subjects = list(planned.action.subjects())
    if isinstance(planned, TaskMove):
        subjects += [
            ActionObject(ObjectKind.NODE, node) for node in (planned.source, planned.target)
        ]
    return subjects


def next_step(plan: Sequence[PlannedAction], limits: StepLimits, seconds: float) -> int:
    """Return the number of actions of the next step: as many as the limits allow.

    `seconds`: the duration of a step, within which its bytes must arrive.
    """
    # No step has more actions than the limit.
    few = plan[: limits.cluster_moves + 1]
    return int(_step_stops(few, limits, limits.cluster_moves, seconds)[0])


def _step_stops(
    plan: Sequence[PlannedAction], limits: StepLimits, first: int, seconds: float
) -> Ints:
    """Return the stop of each step if the first one has at most `first` actions."""
    bounds = StepBounds(
        first, limits.cluster_moves, limits.node_moves, limits.bytes_per_s * seconds
    )
    return step_stops(footprints_of(plan), bounds)


def first_cap(most: int) -> int:
    """Return the cap of the first step if the policy allows `most` actions per step."""
    return max(1, most // 4)


def planned_stops(plan: Iterable[PlannedAction], limits: StepLimits, step_s: float) -> list[int]:
    """Return the stop of each step as `estimate_cost` predicts them."""
    stops = _step_stops(list(plan), limits, first_cap(limits.cluster_moves), step_s)
    return [int(stop) for stop in stops]


def estimate_cost(
    plan: Iterable[PlannedAction], limits: StepLimits, step_s: float
) -> ExecutionCost:
    """Return the cost of the execution if every step takes `step_s` seconds.

    The cap grows by one action per step.
    """
    actions = list(plan)
    steps = len(_step_stops(actions, limits, first_cap(limits.cluster_moves), step_s))
    sent, moves = sum(planned.bytes for planned in actions), len(task_moves(actions))
    return ExecutionCost(
        actions=len(actions),
        moves=moves,
        bytes=sent,
        steps=steps,
        # A task's records of one batch meet its state where it was, those of the next where it is.
        pause_ms=round(step_s * 1000) if moves else 0,
        seconds=round(max(steps * step_s, sent / limits.bytes_per_s), 1),
    )


def rollback(plan: Sequence[PlannedAction]) -> list[PlannedAction]:
    """Return the actions that revert a plan, the last one first."""
    reverted: list[PlannedAction] = []
    for planned in reversed(plan):
        if isinstance(planned, TaskMove):
            query, task, source, target, size = planned
            reverted.append(TaskMove(query, task, target, source, size))
        else:
            after = (planned.action,)
            reverted += [OtherAction(before, after, planned.bytes) for before in planned.before]
    return reverted


def footprints_of(plan: Sequence[PlannedAction]) -> Footprints:
    """Return the footprint of each action.

    A move changes its task, and shares its query with the moves of other tasks. An action that
    changes the whole cluster takes a step of its own.
    """
    is_move = np.fromiter((isinstance(planned, TaskMove) for planned in plan), np.bool_, len(plan))
    moves = np.array(task_moves(plan), np.int64).reshape(-1, 5)
    queries, shared = np.unique(moves[:, 0], return_inverse=True)
    tasks, changed = np.unique(shared << 32 | moves[:, 1], return_inverse=True)
    subjects = [planned.action.subjects() for planned in plan if not isinstance(planned, TaskMove)]
    known = {
        ActionObject(ObjectKind.QUERY, query): number
        for number, query in enumerate(queries.tolist())
    }
    fresh = count(len(queries) + len(tasks))
    others = [[known.setdefault(subject, next(fresh)) for subject in row] for row in subjects]

    lengths = np.ones(len(plan), np.int64)
    lengths[~is_move] = [len(row) for row in others]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    of_move = np.repeat(is_move, lengths)
    objects = np.empty(indptr[-1], np.int64)
    objects[of_move] = len(queries) + changed
    objects[~of_move] = [number for row in others for number in row]
    result = Footprints(
        sent=np.fromiter((planned.bytes for planned in plan), np.int64, len(plan)),
        nodes=np.full((len(plan), 2), NONE, np.int64),
        indptr=indptr,
        objects=objects,
        shared=np.full(len(plan), NONE, np.int64),
        single=np.zeros(len(plan), np.bool_),
    )
    result.nodes[is_move] = moves[:, 2:4]
    result.shared[is_move] = shared
    result.single[~is_move] = [CLUSTER in row for row in subjects]
    return result


def move_set(model: LoadModel, moves: list[TaskMove]) -> MoveSet:
    """Return moves for ordering. Raises `KeyError` on an unknown task or node."""
    units, targets = model.units_of(moves)
    if (units < 0).any():
        unknown = moves[int(np.flatnonzero(units < 0)[0])]
        raise KeyError((unknown.query, unknown.task))
    rates, table = work_units(model, units)
    return MoveSet.from_units(rates, model.capacities, table, np.arange(len(units)), targets)


def work_units(model: LoadModel, units: Ints) -> tuple[Floats, WorkUnits]:
    """Return the records/s of each source; these units in their order, and a unit per node.

    The unit of a node stands for all others there.
    """
    count, streams = len(units), max(1, len(model.rates))
    row_of = count + model.nodes
    row_of[units] = np.arange(count)
    indptr, read = model.complete
    owners = np.repeat(row_of, np.diff(indptr))
    complete = np.unique(owners * streams + read)
    tasks, places = model.split_entries
    spots = row_of[tasks] * streams + model.entries[places]
    partial, places_of = np.unique(spots, return_inverse=True)
    parts = np.bincount(places_of, model.parts[places], len(partial))
    # The sources are what remains of each stream, and the parts.
    stream_of = np.concatenate([np.arange(len(model.rates)), partial % streams])
    remaining = 1 - np.bincount(partial % streams, parts, len(model.rates))
    sources = np.concatenate([remaining, parts]) * model.rates[stream_of]
    begins, members = group_positions(stream_of, len(model.rates))
    stops, entries = pick_rows(begins, complete % streams)
    added = np.flatnonzero(~np.isin(partial, complete))
    rows = np.concatenate(
        [np.repeat(complete // streams, np.diff(stops)), partial[added] // streams]
    )
    numbers = np.concatenate([members[entries], len(model.rates) + added])
    hosts = np.concatenate([model.nodes[units], np.arange(len(model.indices))])
    begins, order = group_positions(rows, len(hosts))
    return sources, WorkUnits(begins, numbers[order], hosts)
