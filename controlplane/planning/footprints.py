"""Footprints of actions: arrays that determine the steps of an execution."""

from collections.abc import Sequence
from itertools import count

import numpy as np

from algorithms.ordering.steps import NONE, Footprints
from controlplane.plans.plan import PlannedAction, TaskMove, task_moves
from controlplane.wire.routing import CLUSTER, Kind, Subject


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
    known = {Subject(Kind.QUERY, query): number for number, query in enumerate(queries.tolist())}
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
