"""What is measured of a node around a moment: load, backlog, since when it is above its limit."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.explain.observation import FULL, ClusterObservation, mean
from controlplane.explain.series_shifts import exceeded_since, largest_shifts
from controlplane.explain.stream_rises import StreamRise
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import Fact, Finding, Series
from controlplane.models import Node
from controlplane.policies.grades import Grade
from controlplane.watch.trends import trend_of


@dataclass(frozen=True)
class LoadShift:
    """The change of the load of a node, in records/s; `time`: None without one."""

    before: float
    after: float
    time: datetime | None


def _grade(value: float | None, limit: float, dead_band: float) -> Grade:
    """Return the level of a value with an upper limit."""
    return KINDS[AlertMeasure.LOAD].grade(value, limit, dead_band)


def load_limit(observed: ClusterObservation, node: Node) -> float:
    """Return the records/s above which the policy has a node as overloaded."""
    return observed.policy.watch_load * node.capacity


def load_finding(observed: ClusterObservation, node: Node) -> Finding:
    """Return the load of a node against its limit."""
    load, limit = observed.load(node.index), load_limit(observed, node)
    since, earliest = _since(observed, observed.series.loads[:, node.index], limit)
    return Finding(
        measure=AlertMeasure.LOAD, value=load, limit=limit, unit=ValueUnit.RATE,
        setting=KINDS[AlertMeasure.LOAD].setting,
        grade=_grade(load, limit, observed.policy.dead_band),
        since=since, since_is_earliest=earliest, node=node.index, node_name=node.name,
    )  # fmt: skip


def measure_finding(
    observed: ClusterObservation, measure: AlertMeasure, values: Floats, limit: float | None
) -> Finding:
    """Return a measure of the whole cluster against its limit."""
    kind, node = KINDS[measure], observed.fullest
    value = mean(observed.recent(values))
    upper = None if kind.is_lower else limit
    since, earliest = (None, False) if upper is None else _since(observed, values, upper)
    return Finding(
        measure=measure, value=value, limit=limit, unit=ValueUnit(kind.unit), setting=kind.setting,
        grade=kind.grade(value, limit, observed.policy.dead_band), since=since,
        since_is_earliest=earliest, node=None if node is None else node.index,
        node_name="" if node is None else node.name,
    )  # fmt: skip


def _since(
    observed: ClusterObservation, values: Floats, limit: float
) -> tuple[datetime | None, bool]:
    """Return since when values exceed a limit, and whether the first sample exceeds it already."""
    times = observed.series.times
    known = times <= observed.time.timestamp() + 1
    place = exceeded_since(values[known], limit)
    if place is None:
        return None, False
    return datetime.fromtimestamp(float(times[known][place]), UTC), place == 0


def load_shift(observed: ClusterObservation, node: Node) -> LoadShift:
    """Return the largest change of the mean load of a node up to the explained moment."""
    now = observed.load(node.index) or 0.0
    before, _, moment = shift_of(observed, observed.series.loads[:, node.index])
    return LoadShift(now if moment is None else before, now, moment)


def shift_of(observed: ClusterObservation, values: Floats) -> tuple[float, float, datetime | None]:
    """Return the means of samples before and after their largest change, and its time.

    The change is the largest up to the explained moment; its time is None if it is not more than
    chance.
    """
    times = observed.series.times
    known = times <= observed.time.timestamp() + 1
    if not known.any():
        return 0.0, 0.0, None
    shifts = largest_shifts(values[known][None, :])
    before, after = float(shifts.before[0]), float(shifts.after[0])
    if not shifts.is_sure(0):
        return before, after, None
    return before, after, datetime.fromtimestamp(float(times[known][int(shifts.places[0])]), UTC)


def node_facts(observed: ClusterObservation, node: Node) -> list[Fact]:
    """Return backlog, latency, busy time and state of a node; figures without data have None."""
    series, dead_band = observed.series, observed.policy.dead_band
    waiting = observed.recent(series.waiting)[:, node.index]
    backlog = _last(waiting)
    latency = mean(observed.recent(series.p95_by_node)[:, node.index])
    limit = float(observed.policy.latency_ms)
    busy = mean(observed.recent(series.busy)[:, node.index])
    # A second of work: then records wait for more than a micro-batch.
    second = node.capacity
    return [
        Fact(
            "backlog", backlog, ValueUnit.RECORDS, second, _grade(backlog, second, dead_band),
            _slope(observed, series.waiting[:, node.index]),
        ),
        Fact("latency", latency, ValueUnit.MS, limit, _grade(latency, limit, dead_band)),
        Fact("busy", busy, ValueUnit.SHARE, FULL, _grade(busy, FULL, dead_band)),
        Fact("state", _last(observed.recent(series.state)[:, node.index]), ValueUnit.BYTES),
    ]  # fmt: skip


def _last(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known[-1]) if len(known) else None


def _slope(observed: ClusterObservation, values: Floats) -> float | None:
    """Return the change per second over the last `RECENT`, None without a trend."""
    times = observed.recent(observed.series.times)
    recent = observed.recent(values)
    known = ~np.isnan(recent)
    trend = trend_of(times[known].tolist(), recent[known].tolist()) if known.any() else None
    return None if trend is None else trend.slope


def load_series(observed: ClusterObservation, node: Node, shift: LoadShift) -> Series:
    """Return the load of a node over time against its capacity."""
    return series_of(
        observed, f"Load of {node.name}", observed.series.loads[:, node.index], ValueUnit.RATE,
        load_limit(observed, node), shift=shift,
    )  # fmt: skip


def series_of(
    observed: ClusterObservation, title: str, values: Floats, unit: ValueUnit, limit: float | None,
    limit_title: str = "limit", shift: LoadShift | StreamRise | None = None,
    times: Sequence[float] | None = None,
) -> Series:  # fmt: skip
    """Return a measure over time with its limit and its change; `times`: s, by default samples'."""
    changed = shift is not None and shift.time is not None
    seconds = observed.series.times.tolist() if times is None else times
    return Series(
        title=title, unit=unit,
        times=[round(1000 * time) for time in seconds],
        values=[None if np.isnan(value) else float(value) for value in values],
        limit=limit, limit_title=limit_title,
        baseline=shift.before if changed and shift is not None else None,
        changed_at=_ms(shift.time) if shift is not None and shift.time is not None else None,
        explained_at=_ms(observed.time),
    )  # fmt: skip


def _ms(moment: datetime) -> int:
    return round(1000 * moment.timestamp())
