"""The watch loops of all clusters; those of a planner are in its module `loop`.

A loop is a pure function from an observation to a reading.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Final

import numpy as np

from algorithms.balance import imbalance
from controlplane.models import Node
from controlplane.numbers import milliseconds, percent
from controlplane.planning import measures
from controlplane.planning.adapters import planner_modules
from controlplane.telemetry.trends import trend_of
from controlplane.watch.loop import WatchLoop
from controlplane.watch.observation import FULL, ClusterObservation
from controlplane.watch.reading import MS, NODES, RATE, LoopReading, above

IMBALANCE: Final = measures.IMBALANCE.name
# The period of forecasts.
TREND: Final = timedelta(minutes=10)
# The forecast horizon: the time to compute, approve and execute a plan.
HORIZON_S: Final = 300.0
# Samples of the last minute without a report of a node with tasks, before it counts as silent.
SILENT_SAMPLES: Final = 3
# A text names so many queries.
_NAMED: Final = 3
# Tasks per active node above which an empty node is worth a plan.
LEAST_TASKS: Final = 2


def _imbalance(observed: ClusterObservation) -> LoopReading:
    if not observed.active_shares:
        return LoopReading(None, observed.policy.watch_imbalance, "No node has reported its load")
    shares = [share for share, _ in observed.active_shares]
    number, limit = imbalance(np.array(shares)), observed.policy.watch_imbalance
    text = f"Imbalance {percent(number)}, limit {percent(limit)}"
    reading = replace(above(number, limit, observed.policy.dead_band, text), calm="balanced")
    return _excluded(reading, observed, [observed.fullest])


def _latency(observed: ClusterObservation) -> LoopReading:
    number, limit = observed.value("p95"), float(observed.policy.latency_ms)
    if number is None:
        return LoopReading(None, limit, "No latency was measured in the last minute")
    text = f"p95 latency {milliseconds(number)}, limit {milliseconds(limit)}"
    return _full(above(number, limit, observed.policy.dead_band, text, MS), observed)


def _overload(observed: ClusterObservation) -> LoopReading:
    node = observed.fullest
    if node is None:
        return LoopReading(None, observed.policy.watch_load, "No node has reported its load")
    share = (observed.load(node.index) or 0.0) / node.capacity
    text = f"{node.name} is loaded to {percent(share)} of its capacity"
    now = above(share, observed.policy.watch_load, observed.policy.dead_band, text)
    for reading in (now, _queueing(observed), _forecast(observed)):
        if reading is not None and reading.trouble:
            return _full(_excluded(reading, observed, [node]), observed)
    return now


def _queueing(observed: ClusterObservation) -> LoopReading | None:
    """Return the reading of a growing backlog of more than a second, else None."""
    known = observed.batches.where(~np.isnan(observed.batches["waiting"]))
    waiting = known["waiting"]
    trend = trend_of(known.times, waiting) if len(known) else None
    if trend is None or trend.slope <= 0 or waiting[-1] < (observed.value("delivered") or 0.0):
        return None
    text = f"{waiting[-1]:,.0f} records wait at nodes, {trend.slope:,.0f} more each second"
    return LoopReading(trend.slope, 0.0, text, RATE, trouble=True)


def _forecast(observed: ClusterObservation) -> LoopReading | None:
    """Return the forecast of the most loaded node, None without a trend over ten minutes."""
    series, start = observed.series, observed.now - TREND
    times = series.between(series.times, start, observed.now)
    loads = series.between(series.loads, start, observed.now)
    trends: list[tuple[float, Node]] = []
    for node in observed.active:
        known = ~np.isnan(loads[:, node.index])
        trend = trend_of(times[known], loads[known, node.index])
        # After a step the load stays: a plan, a scenario or new queries moved it.
        if trend is not None and trend.slope > 0 and not trend.is_step:
            trends.append((trend.after(HORIZON_S) / node.capacity, node))
    if not trends:
        return None
    share, node = max(trends, key=lambda pair: pair[0])
    text = (
        f"{node.name} is forecast at {percent(share)} of its capacity in {HORIZON_S / 60:.0f} min"
    )
    limit = observed.policy.watch_load
    return LoopReading(share, limit, text, trouble=share > limit)


def _lost(observed: ClusterObservation) -> LoopReading:
    hosts = [node for node in observed.nodes if observed.tasks.get(node.index)]
    lost = [node for node in hosts if not node.active]
    if lost:
        verbs = "is not active and still hosts", "are not active and still host"
        text = f"{_names(lost, *verbs)} tasks"
        return _excluded(LoopReading(len(lost), 0, text, NODES, trouble=True), observed, lost)
    silent = [node for node in hosts if _reports_nothing(observed, node)]
    if silent:
        text = f"{_names(silent, 'hosts', 'host')} tasks and did not report for a minute"
        return LoopReading(len(silent), 0, text, NODES, trouble=True, blocked="silent")
    return LoopReading(0, 0, "Every node that hosts tasks is active and reports", NODES)


def _reports_nothing(observed: ClusterObservation, node: Node) -> bool:
    """Return True if no sample of the last minute reports tasks of the node."""
    batches = observed.batches
    counts = np.nan_to_num(batches.column(batches["tasks"], node.index))
    return len(batches) >= SILENT_SAMPLES and not counts.any()


def _added(observed: ClusterObservation) -> LoopReading:
    empty = [node for node in observed.active if not observed.tasks.get(node.index)]
    if not empty or sum(observed.tasks.values()) < LEAST_TASKS * len(observed.active):
        text = "Every active node hosts tasks, or there are few tasks"
        return LoopReading(len(empty), 0, text, NODES)
    # Advice is steady: what a plan emptied was not added. Uneven loads are of the imbalance.
    empty = [node for node in empty if not node.hosted]
    if not empty:
        return LoopReading(0, 0, "Plans or ended queries emptied the nodes without tasks", NODES)
    text = _names(empty, "is active and hosts no task", "are active and host no task")
    return _excluded(LoopReading(len(empty), 0, text, NODES, trouble=True), observed, empty)


def _excluded(
    reading: LoopReading, observed: ClusterObservation, nodes: Sequence[Node | None]
) -> LoopReading:
    """Return the reading, blocked if all these nodes are excluded."""
    names = [node.name for node in nodes if node is not None]
    if not reading.trouble or not observed.excluded_nodes.issuperset(names):
        return reading
    text = f"{reading.text}; excluded: {', '.join(names)}"
    return replace(reading, blocked="excluded", text=text)


def _full(reading: LoopReading, observed: ClusterObservation) -> LoopReading:
    """Return the reading, blocked if nodes that are evenly loaded have no spare capacity."""
    if not reading.trouble or reading.blocked:
        return reading
    full = observed.full_share
    if full is None or full <= FULL or _imbalance(observed).trouble:
        return reading
    load = percent(full)
    text = f"{reading.text}; all nodes together have {load} load: moves cannot help"
    return replace(reading, blocked="no_planner", text=text)


def _names(nodes: Sequence[Node], singular: str, plural: str) -> str:
    """Return the names of nodes with a verb in singular or plural."""
    verb = singular if len(nodes) == 1 else plural
    return f"{', '.join(node.name for node in nodes)} {verb}"


_LOOPS: Final = (
    WatchLoop("node lost", "tasks on an inactive node", 0, _lost, is_measured=False),
    WatchLoop(
        "overload", "a node beyond its capacity, now or in five minutes", 10, _overload, IMBALANCE
    ),
    WatchLoop("latency", "p95 from the log to the result", 20, _latency, IMBALANCE),
    WatchLoop("imbalance", "most loaded node above the mean", 40, _imbalance, IMBALANCE),
    WatchLoop(
        "node added", "an active node without tasks", 60, _added, IMBALANCE, is_measured=False
    ),
)


@cache
def all_loops() -> tuple[WatchLoop, ...]:
    """Return the loops and those of planners, the most urgent first.

    The first one in trouble requests a plan, and the others wait.
    """
    own = (loop for module in planner_modules("loop") for loop in module.LOOPS)
    return tuple(sorted((*_LOOPS, *own), key=lambda loop: loop.order))


def acting_planners() -> list[str]:
    """Return the planners whose loops act themselves.

    They change streams only, so their plans and those of others do not wait for each other.
    """
    return [loop.name for loop in all_loops() if loop.evaluate is not None]


def loop_named(name: str) -> WatchLoop | None:
    """Return a loop by its name, None if its planner is not installed."""
    return next((loop for loop in all_loops() if loop.name == name), None)
