"""What is measured around a moment: a measure or node against its limit, and since when."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.explain.causes.evidence import Evidence
from controlplane.explain.causes.ranking import limit_of
from controlplane.explain.causes.stream_rises import StreamRise
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import Fact, Finding, Series
from controlplane.models import Node
from controlplane.policies.grades import Grade
from controlplane.telemetry.grid import Grid
from controlplane.telemetry.trends import trend_of
from controlplane.watch.observation import FULL, ClusterObservation, LevelShift
from controlplane.watch.series_shifts import exceeded_since

# The trend of a figure of a node is that against the mean of this time before.
_BEFORE: Final = timedelta(minutes=5)


def load_limit(observed: ClusterObservation, node: Node) -> float:
    """Return the deliveries/s above which the policy has a node as overloaded."""
    return observed.policy.watch_load * node.capacity


def node_finding(evidence: Evidence, node: Node) -> tuple[Finding, Series]:
    """Return load or latency of a node, the one farther towards its limit, with its series."""
    observed = evidence.observed
    load, limit = observed.series.loads[:, node.index], load_limit(observed, node)
    value, unit = observed.window.loads[0, node.index], ValueUnit.DELIVERY_RATE
    finding = finding_of(observed, AlertMeasure.LOAD, load, value, limit, node, unit)
    slow = latency_finding(observed, node)
    if slow[0].grade == Grade.BAD and _ratio(slow[0]) > _ratio(finding):
        return slow
    title, shift = f"Load of {node.name}", evidence.shifts[node.index]
    return finding, series_of(observed, title, load, unit, limit, shift=shift)


def _ratio(finding: Finding) -> float:
    """Return the value over its limit, 0 without one of them."""
    return (finding.value or 0.0) / finding.limit if finding.limit else 0.0


def latency_finding(observed: ClusterObservation, node: Node) -> tuple[Finding, Series]:
    """Return the latency of a node against the limit of the policy, with its series."""
    values, limit = observed.series["node_p95"][:, node.index], float(observed.policy.latency_ms)
    value = observed.window["node_p95"][0, node.index]
    finding = finding_of(observed, AlertMeasure.LATENCY, values, value, limit, node)
    return finding, series_of(observed, f"Latency of {node.name}", values, ValueUnit.MS, limit)


def measure_finding(observed: ClusterObservation, measure: AlertMeasure) -> tuple[Finding, Series]:
    """Return a measure of the whole cluster against its limit, with its series."""
    kind, limit = KINDS[measure], limit_of(observed, measure)
    values, (value,) = (
        _values_of(observed, grid, measure) for grid in (observed.series, observed.window)
    )
    finding = finding_of(observed, measure, values, value, limit, observed.fullest)
    series = series_of(observed, kind.title, values, ValueUnit(kind.unit), limit)
    if measure is AlertMeasure.REPLICATION:
        series = replace(series, limits=_known_values(observed.series["rf_limit"]))
    return finding, series


def finding_of(
    observed: ClusterObservation, measure: AlertMeasure, values: Floats, recent: float,
    limit: float | None, node: Node | None, unit: ValueUnit | None = None,
) -> Finding:  # fmt: skip
    """Return a measure against its limit; `recent`: its value over the last minute, or NaN."""
    kind, value = KINDS[measure], None if np.isnan(recent) else float(recent)
    place = None
    if limit is not None and not kind.is_lower:
        place = exceeded_since(observed.known(values), limit)
    times = observed.known(observed.series.times)
    return Finding(
        measure=measure, value=value, limit=limit, unit=unit or ValueUnit(kind.unit),
        setting=kind.setting, grade=kind.grade(value, limit, observed.policy.dead_band),
        since=None if place is None else datetime.fromtimestamp(float(times[place]), UTC),
        since_is_earliest=place == 0, node=None if node is None else node.index,
        node_name="" if node is None else node.name,
    )  # fmt: skip


def _values_of(observed: ClusterObservation, series: Grid, measure: AlertMeasure) -> Floats:
    """Return a measure of the cluster over time, NaN where it is not measured."""
    loads = series.loads[:, : len(observed.nodes)] / observed.capacities
    values: dict[AlertMeasure, Floats] = {
        AlertMeasure.LATENCY: series["p95"],
        AlertMeasure.IMBALANCE: series["imbalance"],
        AlertMeasure.REPLICATION: series["rf"],
        AlertMeasure.RECORDS: series["arrived"],
        AlertMeasure.KEPT: series["kept"],
        AlertMeasure.LOAD: loads.max(axis=1, initial=-1.0),
    }
    return values.get(measure, series["arrived"] * float("nan"))


def node_facts(observed: ClusterObservation, node: Node, queries: int) -> list[Fact]:
    """Return load, backlog, latency, busy time, state and queries; None where data are missing."""
    now, start = observed.window, observed.time - _BEFORE
    before = observed.series.window_of(start - _BEFORE, start)
    rows: list[tuple[str, Floats, Floats, ValueUnit, float | None]] = [
        ("load", now.loads, before.loads, ValueUnit.DELIVERY_RATE, load_limit(observed, node)),
    ]
    # A backlog of a second of work: then records wait for more than a micro-batch.
    for name, series, unit, limit in (
        ("backlog", "node_waiting", ValueUnit.DELIVERIES, node.capacity),
        ("latency", "node_p95", ValueUnit.MS, float(observed.policy.latency_ms)),
        ("busy", "busy", ValueUnit.SHARE, FULL),
        ("state", "node_state", ValueUnit.BYTES, None),
    ):
        rows.append((name, now[series], before[series], unit, limit))
    facts = [
        _fact(observed, name, (known[0, node.index], earlier[0, node.index]), unit, limit)
        for name, known, earlier, unit, limit in rows
        if known.shape[1] > node.index
    ]
    count = Fact("queries", queries, ValueUnit.COUNT, total=observed.running_queries)
    slope = _slope(observed, observed.series["node_waiting"][:, node.index])
    return [replace(f, per_s=slope) if f.name == "backlog" else f for f in facts] + [count]


def _fact(
    observed: ClusterObservation, name: str, values: tuple[float, float], unit: ValueUnit,
    limit: float | None,
) -> Fact:  # fmt: skip
    """Return a fact by its values now and before, NaN if they are not known."""
    value, before = (None if np.isnan(number) else float(number) for number in values)
    grade = Grade.UNKNOWN
    if limit is not None:
        grade = KINDS[AlertMeasure.LOAD].grade(value, limit, observed.policy.dead_band)
    return Fact(name, value, unit, limit, grade, before=before)


def _slope(observed: ClusterObservation, values: Floats) -> float | None:
    """Return the change per second over the last `PRESENT`, None without a trend."""
    times = observed.recent(observed.series.times)
    recent = observed.recent(values)
    known = ~np.isnan(recent)
    trend = trend_of(times[known], recent[known]) if known.any() else None
    return None if trend is None else trend.slope


def series_of(
    observed: ClusterObservation, title: str, values: Floats, unit: ValueUnit, limit: float | None,
    limit_title: str = "limit", shift: LevelShift | StreamRise | None = None,
    times: Sequence[float] | None = None,
) -> Series:  # fmt: skip
    """Return a measure over time with its limit and its change; `times`: s, by default samples'."""
    changed = None if shift is None else shift.time
    seconds = observed.series.times.tolist() if times is None else times
    return Series(
        title=title, unit=unit,
        times=[round(1000 * time) for time in seconds],
        values=_known_values(values),
        limit=limit, limit_title=limit_title,
        baseline=None if shift is None or changed is None else shift.before,
        changed_at=None if changed is None else round(1000 * changed.timestamp()),
        explained_at=round(1000 * observed.time.timestamp()),
    )  # fmt: skip


def _known_values(values: Floats) -> list[float | None]:
    """Return values, None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]
