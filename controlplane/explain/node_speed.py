"""Nodes that are slower than before or than the others, and nodes that process no records."""

from datetime import datetime, timedelta
from typing import Final

import numpy as np

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.node_findings import shift_of
from controlplane.explain.observation import RECENT, ClusterObservation, mean, median
from controlplane.explain.units import ValueUnit
from controlplane.models import Node

# The part of the time per record that a slow node needs besides.
_MOST: Final = 0.5
# A slow node computes so many times as long as the median of the others: a micro-batch waits for
# its slowest node.
_LONGER: Final = 1.5
# Records whose processor time is stated.
_RECORDS: Final = 1000
# A share of time that a node computes, from which its costs per record can be compared.
_BUSY: Final = 0.25
# A node that processes less than this part of the arriving records processes none.
_STALLED: Final = 0.1
# Its backlog grows by at least this part of them; old samples have the backlog alone.
_GROWTH: Final = 0.5
_GROWTH_ALONE: Final = 0.9
_LEAST_SAMPLES: Final = 3


def slowest_cause(observed: ClusterObservation) -> Cause | None:
    """Return the node that is slow or processes no records, the worst one; None without any."""
    causes = [
        cause
        for node in observed.nodes
        for cause in (stalled_cause(observed, node), slow_cause(observed, node))
        if cause is not None
    ]
    return max(causes, key=lambda cause: cause.share or 0.0, default=None)


def stalled_cause(observed: ClusterObservation, node: Node) -> Cause | None:
    """Return a node whose backlog grows and which processes no records, None if it does some."""
    times = observed.recent(observed.series.times)
    waiting = observed.recent(observed.series.waiting)[:, node.index]
    known = ~np.isnan(waiting)
    load = observed.load(node.index)
    if not load or known.sum() < _LEAST_SAMPLES:
        return None
    times, waiting = times[known], waiting[known]
    length = times[-1] - times[0]
    if length < RECENT.total_seconds() / 3:
        return None
    growth = (waiting[-1] - waiting[0]) / length
    processed = mean(observed.recent(observed.series.processed)[:, node.index])
    if processed is not None and processed > _STALLED * load:
        return None
    if growth < (_GROWTH_ALONE if processed is None else _GROWTH) * load:
        return None
    return Cause(
        CauseCode.NODE_STALLED, node=node.index, node_name=node.name, before=load,
        count=int(waiting[-1]), share=1.0, time=_stalled_since(observed, node),
    )  # fmt: skip


def slow_cause(observed: ClusterObservation, node: Node) -> Cause | None:
    """Return a node that needs more processor time per record than before.

    Where earlier samples are missing it is compared with the other nodes. None if it is not slow.
    """
    busy = mean(observed.recent(observed.series.busy)[:, node.index])
    load = observed.load(node.index)
    if not busy or not load or busy < max(_BUSY, _LONGER * _busy_of_others(observed, node.index)):
        return None
    present, others = busy / load, 0
    former = _former_cost(observed, node.index)
    if former is None:
        costs = _costs_of_others(observed, node.index)
        former, others = median(np.array(costs)), len(costs)
    if former is None:
        return None
    # The part of its time that the higher cost takes.
    share = 1 - former / present
    if share < _MOST:
        return None
    return Cause(
        CauseCode.SLOW_NODE, node=node.index, node_name=node.name, time=_slow_since(observed, node),
        before=_RECORDS * 1000 * former, after=_RECORDS * 1000 * present, unit=ValueUnit.MS,
        count=others, share=share,
    )  # fmt: skip


def _busy_of_others(observed: ClusterObservation, index: int) -> float:
    """Return the median share of time that the other nodes compute, 0 without others."""
    busy = observed.recent(observed.series.busy)
    others = [mean(busy[:, node.index]) or 0.0 for node in observed.nodes if node.index != index]
    return median(np.array(others)) or 0.0


def _stalled_since(observed: ClusterObservation, node: Node) -> datetime | None:
    """Return when the node stopped to process records, None if that is not known."""
    before, after, time = shift_of(observed, observed.series.processed[:, node.index])
    return time if after < before else None


def _slow_since(observed: ClusterObservation, node: Node) -> datetime | None:
    """Return when the node began to compute for longer, None if that is not known."""
    before, after, time = shift_of(observed, observed.series.busy[:, node.index])
    return time if after > before else None


def _former_cost(observed: ClusterObservation, index: int) -> float | None:
    """Return the seconds per record of a node in the first half of the explained time."""
    half: timedelta = (observed.time - observed.start) / 2
    earlier = observed.start, observed.start + half
    busy = mean(observed.series.between(observed.series.busy, *earlier)[:, index])
    load = mean(observed.series.between(observed.series.loads, *earlier)[:, index])
    return busy / load if busy and load else None


def _costs_of_others(observed: ClusterObservation, index: int) -> list[float]:
    """Return the present seconds per record of the other nodes that receive records."""
    busy = observed.recent(observed.series.busy)
    costs = []
    for node in observed.nodes:
        load, share = observed.load(node.index), mean(busy[:, node.index])
        if node.index != index and load and share:
            costs.append(share / load)
    return costs
