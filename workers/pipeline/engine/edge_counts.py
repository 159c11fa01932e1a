"""Records that are late or dropped, counted where they belong: at the one node of their task."""

import numpy as np
from numpy.typing import NDArray

from workers.pipeline.engine.assignment.subscriptions import NOT_OWNED, Group, Subscription
from workers.pipeline.engine.evaluation.records import Records
from workers.pipeline.engine.hashing import hash_rows

Mask = NDArray[np.bool_]


def dropped_records(group: Group, records: Records, dropped: Mask) -> dict[tuple[int, int], int]:
    """Return the records that each edge (stream, query) of a group dropped on this node.

    `dropped`: bool[n], the records that the edges drop. Records of a query whose task is on another
    node are counted there.
    """
    result: dict[tuple[int, int], int] = {}
    for stream, _ in group.intake.drop_rules:
        rows = np.flatnonzero(dropped & (records.stream == stream))
        for subscription in group.subscriptions if len(rows) else ():
            result[stream, subscription.query] = int(
                _is_here(group, subscription, records, stream)[rows].sum()
            )
    return result


def late_records(group: Group, records: Records, late: Mask) -> int:
    """Return how many of the late records have their task of the group's first query here.

    `late`: bool[n]. Queries that share a computation have the same late records.
    """
    first, result = group.subscriptions[0], 0
    for stream in first.streams:
        rows = np.flatnonzero(late & (records.stream == stream))
        if len(rows):
            result += int(_is_here(group, first, records, stream)[rows].sum())
    return result


def _is_here(group: Group, subscription: Subscription, records: Records, stream: int) -> Mask:
    """Return which records of a stream have their task of a query on this node."""
    if subscription.routed_tasks == 1:
        return np.ones(len(records), np.bool_)
    if group.intake.column:
        task = records.extras[group.intake.column].astype(np.int64)
    else:
        computation = group.computation
        # The condition of a join is about pairs.
        where = None if computation.join else computation.where
        keys = records.evaluator.hashable(computation.task_key(stream), where)
        count = np.uint64(subscription.routed_tasks)
        task = (hash_rows(keys, len(records)) % count).astype(np.int64)
    return np.asarray(subscription.task_of[task] != NOT_OWNED)
