"""The watch loops: the measure and the limit of each.

A loop is a pure function from an observation to a reading.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from algorithms.balance import imbalance
from controlplane.arrivals.catching_up import load_of
from controlplane.numbers import milliseconds, percent
from controlplane.planning import measures
from controlplane.policies.settings import PolicySettings
from controlplane.watch.ladder import LADDER, STALE
from controlplane.watch.observation import Observation, ObservedNode
from controlplane.wire.figures import Unit

# The minimum number of points.
LEAST: Final = 8
# Standard errors from which a slope is significant (95 %).
SURE: Final = 2.0


@dataclass(frozen=True)
class Trend:
    """The value of the line at the last sample, and its slope per second."""

    now: float
    slope: float

    def after(self, seconds: float) -> float:
        """Return the value of the line a number of seconds after the last sample."""
        return self.now + self.slope * seconds


def trend_of(times: Sequence[float], values: Sequence[float]) -> Trend | None:
    """Return the least-squares line through samples at times in seconds, None without a trend.

    There is no trend if the slope is not significant. Daily patterns are not modelled.
    """
    if len(times) < LEAST:
        return None
    t = np.asarray(times, np.float64) - times[-1]
    y = np.asarray(values, np.float64)
    spread = float(((t - t.mean()) ** 2).sum())
    if spread <= 0:
        return None
    slope = float(((t - t.mean()) * (y - y.mean())).sum()) / spread
    now = float(y.mean() - slope * t.mean())
    residual = float(((y - (now + slope * t)) ** 2).sum()) / (len(times) - 2)
    error = (residual / spread) ** 0.5
    return Trend(now, slope) if abs(slope) > SURE * error else None


IMBALANCE: Final = measures.IMBALANCE.name
REPLICATION: Final = measures.REPLICATION_FACTOR.name
SKEW: Final = measures.SKEW
# The forecast horizon: the time to compute, approve and execute a plan.
HORIZON_S: Final = 300.0
# Samples of the last minute without a report of a node with tasks, before it counts as silent.
SILENT_SAMPLES: Final = 3
# A text names so many queries.
_NAMED: Final = 3
# Tasks per active node above which an empty node is worth a plan.
LEAST_TASKS: Final = 2

# Units of figures and limits.
SHARE: Final = "share"
RATIO: Final = Unit.RATIO.value
MS: Final = Unit.MS.value
SECONDS: Final = "s"
NODES: Final = "nodes"
MOVES: Final = "moves"
RATE: Final = Unit.RATE.value


@dataclass(frozen=True)
class Reading:
    """A loop's measure and its limit in a unit, None if unknown.

    `trouble`: the measure exceeds the limit; `near`: it is within the dead band below the limit;
    `calm`: the code otherwise. `blocked`: the code if no plan can help, for the reason in `text`.
    """

    number: float | None
    limit: float | None
    text: str
    unit: str = SHARE
    trouble: bool = False
    near: bool = False
    calm: str = "within"
    blocked: str = ""


@dataclass(frozen=True)
class Loop:
    """A loop: name, subject, and the measure that its plans must improve ("": any).

    `limit`: the limit of the policy that plans keep. `is_measured`: False for a loop about the
    assignment of tasks, which decides also while the cluster catches up.
    """

    name: str
    about: str
    read: Callable[[Observation], Reading]
    measure: str = ""
    limit: Callable[[PolicySettings], float] = lambda policy: policy.watch_imbalance
    is_measured: bool = True


def _above(number: float, limit: float, dead_band: float, text: str, unit: str = SHARE) -> Reading:
    """Return the reading of a measure with an upper limit."""
    trouble = number > limit
    near = not trouble and number > limit * (1 - dead_band)
    return Reading(number, limit, text, unit, trouble, near)


def _imbalance(observed: Observation) -> Reading:
    loads = [(node, load) for node in observed.active if (load := observed.load(node)) is not None]
    if not loads:
        return Reading(None, observed.policy.watch_imbalance, "No node has reported its load")
    shares = [load / node.capacity for node, load in loads]
    number, limit = imbalance(np.array(shares)), observed.policy.watch_imbalance
    text = f"Imbalance {percent(number)}, limit {percent(limit)}"
    reading = replace(_above(number, limit, observed.policy.dead_band, text), calm="balanced")
    fullest = max(loads, key=lambda pair: pair[1] / pair[0].capacity)[0]
    return _excluded(reading, [fullest])


def _replication(observed: Observation) -> Reading:
    measured, times = observed.middle("rf"), observed.policy.watch_replication
    if measured is None:
        return Reading(None, None, "No records were delivered in the last minute")
    if measured <= times:
        # Every bound is at least 1, so the expensive computation is unnecessary.
        text = f"Replication factor {measured:.2f}, limit {times:g} times its lower bound"
        return Reading(measured, times, text, RATIO)
    replication = observed.replication()
    if replication is None:
        return Reading(None, None, "No query of one task is running")
    # Placement does not change the records of split queries.
    number = replication.factor if observed.split_queries else measured
    limit = times * replication.bound
    text = f"Replication factor {number:.2f}, limit {limit:.2f}: {times:g} times its lower bound"
    return _above(number, limit, observed.policy.dead_band, text, RATIO)


def _latency(observed: Observation) -> Reading:
    number, limit = observed.middle("p95"), float(observed.policy.latency_ms)
    if number is None:
        return Reading(None, limit, "No latency was measured in the last minute")
    text = f"p95 latency {milliseconds(number)}, limit {milliseconds(limit)}"
    return _full(_above(number, limit, observed.policy.dead_band, text, MS), observed)


def _overload(observed: Observation) -> Reading:
    loads = [(node, load) for node in observed.active if (load := observed.load(node)) is not None]
    if not loads:
        return Reading(None, observed.policy.watch_load, "No node has reported its load")
    node, load = max(loads, key=lambda pair: pair[1] / pair[0].capacity)
    share = load / node.capacity
    text = f"{node.name} is loaded to {percent(share)} of its capacity"
    now = _above(share, observed.policy.watch_load, observed.policy.dead_band, text)
    for reading in (now, _queueing(observed), _forecast(observed)):
        if reading is not None and reading.trouble:
            return _full(_excluded(reading, [node]), observed)
    return now


def _queueing(observed: Observation) -> Reading | None:
    """Return the reading of a growing backlog of more than a second, else None."""
    known = [
        (sample["t"] / 1000, sample["waiting"])
        for sample in observed.samples
        if "waiting" in sample
    ]
    trend = trend_of(*zip(*known, strict=True)) if known else None
    if trend is None or trend.slope <= 0 or known[-1][1] < (observed.middle("delivered") or 0.0):
        return None
    text = f"{known[-1][1]:,.0f} records wait at nodes, {trend.slope:,.0f} more each second"
    return Reading(trend.slope, 0.0, text, RATE, trouble=True)


def _forecast(observed: Observation) -> Reading | None:
    """Return the forecast of the most loaded node, None without a trend over ten minutes."""
    trends: list[tuple[float, ObservedNode]] = []
    for node in observed.active:
        known = [
            (sample["t"] / 1000, load)
            for sample in observed.trend
            if (load := load_of(sample, node.index)) is not None
        ]
        trend = trend_of(*zip(*known, strict=True)) if known else None
        if trend is not None and trend.slope > 0:
            trends.append((trend.after(HORIZON_S) / node.capacity, node))
    if not trends:
        return None
    share, node = max(trends, key=lambda pair: pair[0])
    text = (
        f"{node.name} is forecast at {percent(share)} of its capacity in {HORIZON_S / 60:.0f} min"
    )
    limit = observed.policy.watch_load
    return Reading(share, limit, text, trouble=share > limit)


def _skew(observed: Observation) -> Reading:
    limit = observed.policy.watch_skew
    if not observed.skews:
        if not observed.split_queries:
            return Reading(0.0, limit, "No query with several tasks is running")
        return Reading(None, limit, "No keys were sampled in the last minute")
    worst = max(observed.skews, key=lambda skew: skew.imbalance)
    text = f"Skew of {worst.name} {percent(worst.imbalance)}, limit {percent(limit)}"
    reading = _above(worst.imbalance, limit, observed.policy.dead_band, text)
    above = {skew.name for skew in observed.skews if skew.imbalance > limit}
    if reading.trouble and above <= observed.excluded_queries:
        text = f"{text}; excluded: {', '.join(sorted(above)[:_NAMED])}"
        return replace(reading, blocked="excluded", text=text)
    return reading


def _lost(observed: Observation) -> Reading:
    lost = [node for node in observed.nodes if not node.active and node.tasks]
    if lost:
        verbs = "is not active and still hosts", "are not active and still host"
        text = f"{_names(lost, *verbs)} tasks"
        return _excluded(Reading(len(lost), 0, text, NODES, trouble=True), lost)
    silent = [node for node in observed.active if node.tasks and _reports_nothing(observed, node)]
    if silent:
        text = f"{_names(silent, 'hosts', 'host')} tasks and did not report for a minute"
        return Reading(len(silent), 0, text, NODES, trouble=True, blocked="silent")
    return Reading(0, 0, "Every node that hosts tasks is active and reports", NODES)


def _reports_nothing(observed: Observation, node: ObservedNode) -> bool:
    """Return True if no sample of the last minute reports tasks of the node."""
    counts = [
        sample["tasks"][node.index]
        for sample in observed.samples
        if len(sample["tasks"]) > node.index
    ]
    return len(observed.samples) >= SILENT_SAMPLES and not any(counts)


def _added(observed: Observation) -> Reading:
    empty = [node for node in observed.active if not node.tasks]
    tasks = sum(node.tasks for node in observed.nodes)
    if not empty or tasks < LEAST_TASKS * len(observed.active):
        text = "Every active node hosts tasks, or there are few tasks"
        return Reading(len(empty), 0, text, NODES)
    text = _names(empty, "is active and hosts no task", "are active and host no task")
    return _excluded(Reading(len(empty), 0, text, NODES, trouble=True), empty)


def _ladder(observed: Observation) -> Reading:
    """Return the reading of the armed ladder: stale for long enough is above the limit."""
    policy = observed.policy
    ladder, limit = observed.ladder(), policy.shedding_drift
    if ladder is None:
        return Reading(0.0, limit, "No ladder of load shedding is armed")
    number, reasons = ladder.drift.largest, ladder.reasons(limit)
    if not reasons:
        text = f"The armed ladder is up to date: changes of at most {percent(number)}"
        return Reading(number, limit, text, near=number > limit * (1 - policy.dead_band))
    text = f"The armed ladder is stale: {'; '.join(reasons)}"
    if ladder.is_trouble or ladder.stale_s >= policy.watch_ladder_s:
        return Reading(number, limit, text, trouble=True)
    return Reading(number, limit, text, calm=STALE)


def _excluded(reading: Reading, nodes: list[ObservedNode]) -> Reading:
    """Return the reading, blocked if all these nodes are excluded."""
    if not reading.trouble or not all(node.excluded for node in nodes):
        return reading
    text = f"{reading.text}; excluded: {', '.join(node.name for node in nodes)}"
    return replace(reading, blocked="excluded", text=text)


def _full(reading: Reading, observed: Observation) -> Reading:
    """Return the reading, blocked if all nodes together have no spare capacity."""
    if not reading.trouble or reading.blocked:
        return reading
    total = sum(observed.load(node) or 0.0 for node in observed.active)
    capacity = sum(node.capacity for node in observed.active)
    if not capacity or total <= capacity:
        return reading
    load = percent(total / capacity)
    text = f"{reading.text}; all nodes together have {load} load: moves cannot help"
    return replace(reading, blocked="no_planner", text=text)


def _names(nodes: list[ObservedNode], singular: str, plural: str) -> str:
    """Return the names of nodes with a verb in singular or plural."""
    verb = singular if len(nodes) == 1 else plural
    return f"{', '.join(node.name for node in nodes)} {verb}"


# The most urgent loop first: it requests a plan, and the others wait.
LOOPS: Final = (
    Loop("node lost", "tasks on an inactive node", _lost, is_measured=False),
    Loop("overload", "a node beyond its capacity, now or in five minutes", _overload, IMBALANCE),
    Loop("latency", "p95 from the log to the result", _latency, IMBALANCE),
    Loop(
        "skew", "the fullest task of a query, because of hot keys", _skew, SKEW,
        lambda policy: policy.watch_skew,
    ),
    Loop("imbalance", "most loaded node above the mean", _imbalance, IMBALANCE),
    Loop("replication", "records delivered to several nodes", _replication, REPLICATION),
    Loop("node added", "an active node without tasks", _added, IMBALANCE, is_measured=False),
    Loop(LADDER, "an armed ladder of load shedding for other rates, costs or queries", _ladder),
)  # fmt: skip
# It redirects streams automatically, or requests a proposal of its own planner (`watch.admission`).
ADMISSION: Final = Loop(
    "admission",
    "a split node beyond its capacity, now or in the next periods",
    lambda _: Reading(None, None, ""),
)
ALL_LOOPS: Final = (*LOOPS, ADMISSION)
BY_NAME: Final = {loop.name: loop for loop in LOOPS}
