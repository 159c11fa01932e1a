"""The card of the worst cluster: what is wrong, its likely cause, its plan, and the actions."""

from datetime import datetime
from typing import Any

from controlplane import numbers
from controlplane.alerts.fleet import FleetCluster
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import AlertReading
from controlplane.alerts.statuses import FleetStatus
from controlplane.planning.plan_summary import PlanSummary
from controlplane.proposals.outcome import outcome_of
from dashboard.clusters.headline import headline_of, phrase
from dashboard.explain.plot import Plot
from dashboard.explain.rows import explain_url
from dashboard.fleet.alert_rows import alert_row
from dashboard.fleet.measure_plot import limits_of, measure_plot
from dashboard.fleet.rows import chip_of
from dashboard.frame.headline import Headline
from dashboard.proposals.headline import effect_clauses, joined


def attention_of(row: FleetCluster, now: datetime) -> dict[str, Any]:
    """Return the card of a cluster that needs a person.

    `headline`: its problem, explained at the address `explain`; `plot`: of its worst measure, None
    without values; `alerts`: that fire; `effects`: of the waiting proposal, "" if not known.
    """
    assessed, worst = row.assessed, _worst(row)
    headline, explain = _problem(row, now)
    return {
        "cluster": assessed.cluster,
        "chip": chip_of(assessed),
        "since": numbers.clock(assessed.since, now) if assessed.since is not None else "",
        "held": numbers.duration(now - assessed.since) if assessed.since is not None else "",
        "headline": headline,
        "explain": explain,
        "measure": worst,
        "plot": None if worst is None else _plot(row, worst),
        "proposal": row.proposal,
        "effects": _effects(row),
        "alerts": assessed.firing(now),
    }


def _problem(row: FleetCluster, now: datetime) -> tuple[Headline, str]:
    """Return what is wrong with a cluster and why, and where it is explained, "" for none."""
    assessed = row.assessed
    alerts = assessed.firing(now)
    limits = assessed.limits
    if limits.exceeded or assessed.status is FleetStatus.FAILED or not alerts:
        headline = headline_of(assessed.cluster, assessed.readings, limits.exceeded)
        explain = explain_url(assessed.cluster, headline.explain) if headline.explain else ""
        return headline, explain
    # The value is within the limit again; the alert ends after its hold time.
    alert = alert_row(alerts[0], now)
    what = f"{alert.title} since {alert.since}: {alert.value} now, limit {alert.limit}"
    return Headline(what, "The alert ends if the value stays within the limit."), alert.explain


def _worst(row: FleetCluster) -> AlertReading | None:
    """Return the reading to draw: the farthest beyond its limit that has a line."""
    readings = row.assessed.readings
    drawn = [reading for reading in readings.exceeded if reading.measure is not AlertMeasure.AGE]
    if drawn:
        return drawn[0]
    return readings[AlertMeasure.RECORDS] if row.assessed.status is FleetStatus.FAILED else None


def _plot(row: FleetCluster, reading: AlertReading) -> Plot | None:
    values = row.lines.get(reading.measure, ())
    finding = phrase(row.assessed.cluster, reading)
    return measure_plot(
        reading.kind, values, row.assessed.readings.end, reading.limit, finding,
        limits=limits_of(row.lines, reading.measure),
    )  # fmt: skip


def _effects(row: FleetCluster) -> str:
    if row.proposal is None:
        return ""
    policy = row.assessed.readings.policy
    clauses = effect_clauses(outcome_of(row.proposal, PlanSummary(), policy))
    return f"{joined(clauses)}." if clauses else ""
