"""Nodes that are slower than before or than the others, and nodes that process no records."""

from datetime import timedelta
from typing import Final

import numpy as np

from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.observation import RECENT, ClusterObservation, mean, median
from controlplane.explain.units import ValueUnit
from controlplane.models import Node

# The part of the time per record that a slow node needs besides.
_MOST: Final = 0.5
# Records whose processor time is stated.
_RECORDS: Final = 1000
# A share of time that a node computes, from which its costs per record can be compared.
_BUSY: Final = 0.25
# A backlog that grows by this part of the arriving records is that of a node that processes none.
_STALLED: Final = 0.9
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
    """Return a node whose backlog grows by all records that arrive, None if it processes some."""
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
    if growth < _STALLED * load:
        return None
    return Cause(
        CauseCode.NODE_STALLED, node=node.index, node_name=node.name, before=load,
        count=int(waiting[-1]), share=1.0,
    )  # fmt: skip


def slow_cause(observed: ClusterObservation, node: Node) -> Cause | None:
    """Return a node that needs more processor time per record than before.

    Where earlier samples are missing it is compared with the other nodes. None if it is not slow.
    """
    busy = mean(observed.recent(observed.series.busy)[:, node.index])
    load = observed.load(node.index)
    if not busy or not load or busy < _BUSY:
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
        CauseCode.SLOW_NODE, node=node.index, node_name=node.name,
        before=_RECORDS * 1000 * former, after=_RECORDS * 1000 * present, unit=ValueUnit.MS,
        count=others, share=share,
    )  # fmt: skip


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
