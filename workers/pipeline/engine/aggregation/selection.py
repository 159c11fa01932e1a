"""Which records of a batch a computation aggregates."""

from typing import Any

import numpy as np

from controlplane.wire.language.tree import Expression
from controlplane.wire.query import Computation
from workers.pipeline.engine.arrow import pc
from workers.pipeline.engine.faults import QueryFault
from workers.pipeline.engine.records import LUCK, Records
from workers.pipeline.engine.shedding import is_dropped
from workers.pipeline.engine.subscriptions import Drops, Intake


def kept_of(
    records: Records,
    computation: Computation,
    streams: frozenset[int] | None,
    intake: Intake,
) -> tuple[Any, Any, Any]:
    """Return which records are aggregated (None: all), which were late, and which ones arcs drop.

    Raises `QueryFault` where the condition cannot be computed.
    """
    gone = _dropped(records, intake.drops)
    return *_kept(records, computation, streams, gone), gone


def _dropped(records: Records, drops: Drops) -> Any:
    """Return which records the arcs drop, None for none."""
    if not drops:
        return None
    gone = np.zeros(len(records), np.bool_)
    for stream, shed in drops:
        mine = np.flatnonzero(records.stream == stream)
        if not len(mine):
            # Where no stream's arc drops, split nodes say nothing of luck.
            continue
        gone[mine] = is_dropped(shed, records.extras[LUCK][mine], records.ts_ms[mine])
    return gone


def _kept(
    records: Records, computation: Computation, streams: frozenset[int] | None, gone: Any
) -> tuple[Any, Any]:
    """Return which records are selected and on time (None: all), and which were late."""
    wanted = _wanted(records, computation, streams)
    if gone is not None:
        wanted = ~gone if wanted is None else wanted & ~gone
    late = records.is_late(computation.lateness_ms)
    if not late.any():
        return wanted, None
    # A record that the query does not want is not late for it.
    too_late = late if wanted is None else late & wanted
    return (~late if wanted is None else wanted & ~late), too_late


def _wanted(records: Records, computation: Computation, streams: frozenset[int] | None) -> Any:
    """Return which records a computation selects, None for all."""
    mine = None
    if streams is not None and not records.streams <= streams:
        mine = np.isin(records.stream, list(streams))
    if computation.where is None:
        return mine
    selected = selected_by(records, computation.where, mine)
    return selected if mine is None else selected & mine


def selected_by(records: Records, where: Expression, mine: Any) -> Any:
    """Return for which records a condition holds, bool[n]; of those not in `mine` it may say so.

    Raises `QueryFault` where it cannot be computed for a record in `mine` (None: for any).
    """
    try:
        return _holds(records.evaluator.array(where))
    except QueryFault:
        rows = np.arange(len(records)) if mine is None else np.flatnonzero(mine)
    selected = np.zeros(len(records), np.bool_)
    selected[rows] = _holds(records.evaluator.within(rows).array(where))
    return selected


def _holds(condition: Any) -> Any:
    return np.asarray(pc.fill_null(condition, fill_value=False))
