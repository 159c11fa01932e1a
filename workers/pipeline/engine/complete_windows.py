"""Complete windows: they begin and end within one batch, and need no state.

A window of one pane is complete where no record of it came before this batch (it begins behind all
that the node had met of its stream) and none that is on time can come after it (its stream is past
its end by more than the lateness). Its rows are the same for all queries with the same computation,
streams and tasks, so they are emitted once for all of them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.aggregates.state_schema import StateSchema, schema_named
from controlplane.wire.query import Computation
from workers.pipeline.engine.aggregation.panes import BatchPanes
from workers.pipeline.engine.arrow import pa
from workers.pipeline.engine.assignment.subscriptions import NodeGroup, Subscription
from workers.pipeline.engine.evaluation.records import NO_WATERMARK

_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class WindowBlock:
    """Complete windows of one computation, as the tasks of some queries have them.

    `recipients`: query and incarnation of each; `tables`: rows by state schema, of any of these
    queries.
    """

    recipients: Sequence[tuple[int, int]]
    tables: Sequence[tuple[str, StateSchema, Any]]


@dataclass(frozen=True)
class CompleteWindows:
    """Between which event times windows of a batch are complete.

    `before`, `after`: the newest event time (ms) of each stream that the node had met before and
    after this batch. `merged_elsewhere`: queries whose windows somebody else combines.
    """

    before: Mapping[int, int]
    after: Mapping[int, int]
    merged_elsewhere: Collection[int] = ()

    def takers(self, group: NodeGroup) -> tuple[NodeGroup | None, NodeGroup | None]:
        """Return the group of the queries that emit complete windows, and that of all others."""
        window = group.computation.window
        if group.computation.join is not None or window.panes != 1 or group.intake.windows:
            return None, group
        merged_elsewhere = [
            item.query for item in group.subscriptions if item.query in self.merged_elsewhere
        ]
        if not merged_elsewhere:
            return group, None
        others = {subscription.query for subscription in group.subscriptions}.difference(
            merged_elsewhere
        )
        return (group.of_queries(others) if others else None), group.of_queries(merged_elsewhere)

    def is_complete(self, rows: Any, computation: Computation) -> NDArray[np.bool_]:
        """Return which rows of panes are whole windows that are complete, bool[rows]."""
        streams, stream_of = np.unique(np.asarray(rows["stream"]), return_inverse=True)
        known = streams.tolist()
        before = np.array([self.before.get(item, _NEVER) for item in known], np.int64)[stream_of]
        after = np.array([self.after.get(value, NO_WATERMARK) for value in known], np.int64)[
            stream_of
        ]
        start = np.asarray(rows["pane"])
        end = start + computation.window.size_ms
        is_past = (after != NO_WATERMARK) & (end <= np.where(after == NO_WATERMARK, 0, after)
                                        - computation.lateness_ms)  # fmt: skip
        return np.asarray(is_past & (start > before))


def split_complete(
    passing: CompleteWindows, computation: Computation, panes: Sequence[BatchPanes]
) -> list[tuple[BatchPanes | None, BatchPanes | None]]:
    """Return of each part of a batch the panes that are complete, and the others; None for none.

    A stream that is in several parts has no complete panes: they would have to be merged.
    """
    once = _streams_of_one(panes)
    result: list[tuple[BatchPanes | None, BatchPanes | None]] = []
    for part in panes:
        tables = [part.rows, part.cells, part.blobs]
        masks = [None if table is None else passing.is_complete(table, computation)
                 & np.isin(np.asarray(table["stream"]), once) for table in tables]  # fmt: skip
        if masks[0] is None or not masks[0].any():
            result.append((None, part))
        elif masks[0].all():
            result.append((part, None))
        else:
            result.append((_some(part, tables, masks), _some(part, tables, [
                None if mask is None else ~mask for mask in masks])))  # fmt: skip
    return result


def _streams_of_one(panes: Sequence[BatchPanes]) -> NDArray[np.int64]:
    streams = [np.unique(np.asarray(part.rows["stream"])) for part in panes]
    known, count = np.unique(np.concatenate(streams), return_counts=True)
    return np.asarray(known[count == 1])


def _some(part: BatchPanes, tables: Sequence[Any], masks: Sequence[Any]) -> BatchPanes:
    rows, cells, blobs = (
        None if table is None else table.filter(pa.array(mask))
        for table, mask in zip(tables, masks, strict=True)
    )
    return replace(part, rows=rows, cells=cells, blobs=blobs)


def group_alike(group: NodeGroup) -> Iterator[tuple[NodeGroup, list[Subscription]]]:
    """Yield queries of a group with the same streams and tasks: the group of one, and all."""
    result: dict[tuple[Any, ...], list[Subscription]] = {}
    for subscription in group.subscriptions:
        result.setdefault(
            (subscription.streams, subscription.tasks, subscription.owned.tobytes()), []
        ).append(subscription)
    for some in result.values():
        yield NodeGroup.of(group.computation, some[:1], group.intake), some


def block_of(recipients: Sequence[Subscription], tables: Sequence[tuple[str, Any]]) -> WindowBlock:
    """Return the block of complete windows, from rows of the first recipient's tasks."""
    return WindowBlock(
        [(recipient.query, recipient.incarnation) for recipient in recipients],
        [(name, schema_named(name), rows) for name, rows in tables],
    )
