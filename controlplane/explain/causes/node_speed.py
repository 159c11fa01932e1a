"""Nodes that are slower than before or than the others, and nodes that process no records."""

from datetime import timedelta
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.units import ValueUnit
from controlplane.models import Node
from controlplane.telemetry.grid import means
from controlplane.watch.observation import ClusterObservation

# The part of the time per record that a slow node needs besides.
_MOST: Final = 0.5
# A slow node computes so many times as long as the median of the others: a micro-batch waits for
# its slowest node.
_LONGER: Final = 1.5
# Records whose processor time is stated, in ms.
_PER_RECORDS: Final = 1000 * 1000
# A share of time that a node computes, from which its costs per record can be compared.
_BUSY: Final = 0.25
# A node that processes less than this part of the arriving records processes none.
_STALLED: Final = 0.1
# Its backlog grows by at least this part of them; old samples have the backlog alone.
_GROWTH: Final = 0.5
_GROWTH_ALONE: Final = 0.9
_LEAST_SAMPLES: Final = 3
_LEAST_S: Final = 20.0
# A shorter past is not compared with the present.
_LEAST_PAST: Final = timedelta(minutes=5)


def speed_causes(observed: ClusterObservation) -> dict[int, Cause]:
    """Return by index the nodes that process no records, or need more time for each.

    `count` of a slow node: the number of others that it is compared with, 0 if with its past.
    """
    result = _slow(observed)
    for node in observed.nodes:
        if stalled := _stalled(observed, node):
            result[node.index] = stalled
    return result


def _stalled(observed: ClusterObservation, node: Node) -> Cause | None:
    """Return a node whose backlog grows and which processes no records, None if it does some."""
    waiting = observed.recent(observed.series["node_waiting"])[:, node.index]
    known = ~np.isnan(waiting)
    load = observed.load(node.index)
    if not load or known.sum() < _LEAST_SAMPLES or not waiting[known][-1]:
        return None
    times, waiting = observed.recent(observed.series.times)[known], waiting[known]
    length = times[-1] - times[0]
    if length < _LEAST_S:
        return None
    growth = (waiting[-1] - waiting[0]) / length
    processed = observed.recent_means(observed.series["node_processed"])[node.index]
    if processed > _STALLED * load:
        return None
    if growth < (_GROWTH_ALONE if np.isnan(processed) else _GROWTH) * load:
        return None
    shift = observed.shift_of(observed.series["node_processed"][:, node.index])
    return Cause(
        CauseCode.NODE_STALLED, node=node.index, node_name=node.name, before=load,
        count=int(waiting[-1]), time=shift.time if shift.after < shift.before else None,
    )  # fmt: skip


def _slow(observed: ClusterObservation) -> dict[int, Cause]:
    """Return the nodes that need twice the processor time per record, as before or as others."""
    series, half = observed.series, (observed.time - observed.settled) / 2
    busy, costs = observed.recent_means(series["busy"]), _costs(observed)
    former = _ratios(*(
        means(series.between(values, observed.settled, observed.settled + half))
        for values in (series["busy"], series.loads)
    ))  # fmt: skip
    result: dict[int, Cause] = {}
    for node in observed.nodes:
        place = node.index
        cost, before, others = costs[place], former[place], 0
        if not busy[place] >= _BUSY or np.isnan(cost):
            continue
        if np.isnan(before) or half < _LEAST_PAST:
            known = np.delete(costs, place)
            known = known[~np.isnan(known)]
            before, others = float(np.median(known)) if len(known) else cost, len(known)
        if 1 - before / cost < _MOST:
            continue
        shift = observed.shift_of(series["busy"][:, place])
        result[place] = Cause(
            CauseCode.SLOW_NODE, node=place, node_name=node.name,
            time=shift.time if shift.after > shift.before else None,
            before=_PER_RECORDS * before, after=_PER_RECORDS * cost, unit=ValueUnit.MS,
            count=others,
        )  # fmt: skip
    return result


def _costs(observed: ClusterObservation) -> Floats:
    """Return the seconds of processor time per arriving record of each node, NaN without any."""
    loads = [np.nan if load is None else load for load in observed.loads]
    return _ratios(observed.recent_means(observed.series["busy"])[: len(loads)], np.array(loads))


def _ratios(busy: Floats, loads: Floats) -> Floats:
    """Return the quotients of positive numbers, NaN for others."""
    are_known = (busy > 0) & (loads[: len(busy)] > 0)
    ratios: Floats = np.where(are_known, busy / np.where(are_known, loads, 1.0), np.nan)
    return ratios


def computes_longest(observed: ClusterObservation, node: int) -> bool:
    """Return True if a node computes for much longer than the median of the others.

    Only then micro-batches wait for it.
    """
    busy = observed.recent_means(observed.series["busy"])[: len(observed.nodes)]
    others = np.delete(busy, node)
    others = others[~np.isnan(others)]
    return not len(others) or bool(busy[node] >= _LONGER * np.median(others))
