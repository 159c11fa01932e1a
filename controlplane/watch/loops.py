"""The watch loops: the measure and the limit of each.

A loop is a function of what was seen; it decides nothing and writes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from controlplane.planning import measures
from controlplane.watch.observation import Observation, ObservedNode
from controlplane.watch.trends import trend_of
from controlplane.wire.figures import Unit

IMBALANCE: Final = measures.IMBALANCE.name
REPLICATION: Final = measures.REPLICATION_FACTOR.name
# How far ahead an overload is forecast: a plan is computed, approved and carried out by then.
HORIZON_S: Final = 300.0
# A node that is loaded to its capacity is overloaded beyond it.
FULL: Final = 1.0
# Samples of the last minute in which a node that hosts tasks must have said something.
HEARD: Final = 3
# An empty node is worth a plan once the others have this many tasks each, on average.
WORTH: Final = 2


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
    """A loop's measure and its limit in a unit, None if it is not known.

    trouble: it is beyond the limit; near: not by so much below it as the dead band asks. calm: the
    code where neither holds. blocked: the code if no plan can help, and text is the reason.
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
    """A loop: its name, its subject, and the measure that its plans improve ("": any)."""

    name: str
    about: str
    read: Callable[[Observation], Reading]
    measure: str = ""


def _above(number: float, limit: float, dead_band: float, text: str, unit: str = SHARE) -> Reading:
    """Return the reading of a measure that should be small."""
    trouble = number > limit
    near = not trouble and number > limit * (1 - dead_band)
    return Reading(number, limit, text, unit, trouble, near)


def _imbalance(seen: Observation) -> Reading:
    loads = [(node, load) for node in seen.active if (load := seen.load(node)) is not None]
    if not loads:
        return Reading(None, seen.policy.watch_imbalance, "No node has told of its load")
    shares = [load / node.capacity for node, load in loads]
    number, limit = max(shares) - fmean(shares), seen.policy.watch_imbalance
    text = f"Imbalance {number:.0%}, acted on above {limit:.0%}"
    reading = replace(_above(number, limit, seen.policy.dead_band, text), calm="balanced")
    fullest = max(loads, key=lambda pair: pair[1] / pair[0].capacity)[0]
    return _excluded(reading, [fullest])


def _replication(seen: Observation) -> Reading:
    measured, times = seen.middle("rf"), seen.policy.watch_replication
    if measured is None:
        return Reading(None, None, "No record has been delivered lately")
    if measured <= times:
        # No bound is below 1, so the costly one need not be known.
        text = f"Replication factor {measured:.2f}, acted on above {times:g} times its bound"
        return Reading(measured, times, text, RATIO)
    replication = seen.replication()
    if replication is None:
        return Reading(None, None, "No query runs whose node a placement could choose")
    # Tasks of split queries get their share everywhere: only the others can be placed better.
    number = replication.factor if seen.split_queries else measured
    limit = times * replication.bound
    text = f"Replication factor {number:.2f}, acted on above {limit:.2f}: {times:g} times its bound"
    return _above(number, limit, seen.policy.dead_band, text, RATIO)


def _latency(seen: Observation) -> Reading:
    number, limit = seen.middle("p95"), float(seen.policy.latency_ms)
    if number is None:
        return Reading(None, limit, "No latency was measured lately")
    text = f"p95 latency {number:,.0f} ms, acted on above {limit:,.0f} ms"
    return _full(_above(number, limit, seen.policy.dead_band, text, MS), seen)


def _overload(seen: Observation) -> Reading:
    loads = [(node, load) for node in seen.active if (load := seen.load(node)) is not None]
    if not loads:
        return Reading(None, FULL, "No node has told of its load")
    node, load = max(loads, key=lambda pair: pair[1] / pair[0].capacity)
    share = load / node.capacity
    text = f"{node.name} is loaded to {share:.0%} of its capacity"
    now = _above(share, FULL, seen.policy.dead_band, text)
    for reading in (now, _queueing(seen), _forecast(seen)):
        if reading is not None and reading.trouble:
            return _full(_excluded(reading, [node]), seen)
    return now


def _queueing(seen: Observation) -> Reading | None:
    """Return the reading of a backlog at nodes that exceeds a second and grows, else None."""
    known = [
        (sample["t"] / 1000, sample["waiting"]) for sample in seen.samples if "waiting" in sample
    ]
    trend = trend_of(*zip(*known, strict=True)) if known else None
    if trend is None or trend.slope <= 0 or known[-1][1] < (seen.middle("delivered") or 0.0):
        return None
    text = f"{known[-1][1]:,.0f} records wait at nodes, {trend.slope:,.0f} more each second"
    return Reading(trend.slope, 0.0, text, RATE, trouble=True)


def _forecast(seen: Observation) -> Reading | None:
    """Return the predicted load of the most loaded node, if the last ten minutes have a trend."""
    trends: list[tuple[float, ObservedNode]] = []
    for node in seen.active:
        known = [
            (sample["t"] / 1000, sample["loads"][node.index])
            for sample in seen.trend
            if len(sample.get("loads") or ()) > node.index
        ]
        trend = trend_of(*zip(*known, strict=True)) if known else None
        if trend is not None and trend.slope > 0:
            trends.append((trend.after(HORIZON_S) / node.capacity, node))
    if not trends:
        return None
    share, node = max(trends, key=lambda pair: pair[0])
    text = f"{node.name} is forecast at {share:.0%} of its capacity in {HORIZON_S / 60:.0f} min"
    return Reading(share, FULL, text, trouble=share > FULL)


def _lost(seen: Observation) -> Reading:
    lost = [node for node in seen.nodes if not node.active and node.tasks]
    if lost:
        text = f"{_names(lost)} not active and still {_host(lost)} tasks"
        return _excluded(Reading(len(lost), 0, text, NODES, trouble=True), lost)
    silent = [node for node in seen.active if node.tasks and _reports_nothing(seen, node)]
    if silent:
        text = f"{_names(silent, 'host')} tasks and said nothing for a minute"
        return Reading(len(silent), 0, text, NODES, trouble=True, blocked="silent")
    return Reading(0, 0, "Every node that hosts tasks is active and reports", NODES)


def _reports_nothing(seen: Observation, node: ObservedNode) -> bool:
    """Return True if a node hosts tasks and no sample of the last minute reports any."""
    counts = [
        sample["tasks"][node.index] for sample in seen.samples if len(sample["tasks"]) > node.index
    ]
    return len(seen.samples) >= HEARD and not any(counts)


def _added(seen: Observation) -> Reading:
    empty = [node for node in seen.active if not node.tasks]
    tasks = sum(node.tasks for node in seen.nodes)
    if not empty or tasks < WORTH * len(seen.active):
        text = "Every active node hosts tasks, or there are few of them"
        return Reading(len(empty), 0, text, NODES)
    text = f"{_names(empty)} active and {_host(empty)} no task"
    return _excluded(Reading(len(empty), 0, text, NODES, trouble=True), empty)


def _excluded(reading: Reading, nodes: list[ObservedNode]) -> Reading:
    """Return the reading, blocked if exclusions cover all nodes concerned."""
    if not reading.trouble or not all(node.excluded for node in nodes):
        return reading
    text = f"{reading.text}; excluded: {', '.join(node.name for node in nodes)}"
    return replace(reading, blocked="excluded", text=text)


def _full(reading: Reading, seen: Observation) -> Reading:
    """Return the reading, blocked if all nodes together have no spare capacity."""
    if not reading.trouble or reading.blocked:
        return reading
    asked = sum(seen.load(node) or 0.0 for node in seen.active)
    room = sum(node.capacity for node in seen.active)
    if not room or asked <= room:
        return reading
    text = f"{reading.text}; all nodes together are asked for {asked / room:.0%}: moving is no help"
    return replace(reading, blocked="no_planner", text=text)


def _names(nodes: list[ObservedNode], verb: str = "be") -> str:
    """Return the names of nodes with a verb that fits their number."""
    is_single = len(nodes) == 1
    forms = {"be": ("is", "are"), "host": ("hosts", "host")}[verb]
    return f"{', '.join(node.name for node in nodes)} {forms[0] if is_single else forms[1]}"


def _host(nodes: list[ObservedNode]) -> str:
    return "hosts" if len(nodes) == 1 else "host"


# The most urgent first: one of them asks for a plan, and the others wait for it.
LOOPS: Final = (
    Loop("node lost", "tasks on a node that is not there", _lost),
    Loop("overload", "a node beyond its capacity, now or soon", _overload, IMBALANCE),
    Loop("latency", "from the log to the result", _latency, IMBALANCE),
    Loop("imbalance", "fullest node above the mean", _imbalance, IMBALANCE),
    Loop("replication", "records delivered to several nodes", _replication, REPLICATION),
    Loop("node added", "an active node without tasks", _added, IMBALANCE),
)
BY_NAME: Final = {loop.name: loop for loop in LOOPS}
