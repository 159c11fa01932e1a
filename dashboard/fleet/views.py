"""The page of the fleet: a card of the worst cluster, clusters by risk, alerts, what waits.

A row of a cluster has its status, measures with limits and lines, and the recommended action.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone

from controlplane import numbers
from controlplane.access.roles import OPERATOR
from controlplane.alerts.fleet import FleetCluster, fleet_clusters
from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.alerts.readings import AlertReading
from controlplane.alerts.states import AlertStatus
from controlplane.alerts.statuses import ClusterStatus, FleetStatus
from controlplane.alerts.visits import changes_since, last_visit
from controlplane.clusters import demo
from controlplane.clusters.listing import visible_cluster
from controlplane.explain import subject_of_measure
from controlplane.numbers import clock
from controlplane.planning.plan_summary import PlanSummary
from controlplane.policies.grades import Grade
from controlplane.proposals.outcome import outcome_of
from dashboard.clusters.alert_rows import AlertRow, alert_rows
from dashboard.clusters.headline import headline_of
from dashboard.explain.plot import Plot
from dashboard.explain.rows import explain_url
from dashboard.fleet.headline import fleet_headline
from dashboard.fleet.measure_plot import limits_of, measure_plot
from dashboard.frame.readings import phrase, shown_value
from dashboard.frame.tile import Chip
from dashboard.guards import PageRequest, anyone_page, cluster_page
from dashboard.lists import require_known
from dashboard.navigation import navigation, statuses_of
from dashboard.proposals.headline import effect_clauses, joined
from dashboard.responses import render_page

_BY_NAME: Final = "name"
_HANDLED: Final = (
    AlertStatus.FIRING, AlertStatus.RECOVERING, AlertStatus.ACKNOWLEDGED, AlertStatus.SILENCED,
)  # fmt: skip


@anyone_page
def overview(request: PageRequest) -> HttpResponse:
    """Render the visible clusters; the response to htmx has the parts that change."""
    require_known(request, {"order"})
    now = timezone.now()
    rows = fleet_clusters(statuses_of(request), now)
    context = _context(request, rows, now)
    if request.htmx and not request.htmx.boosted:
        context["navigation"] = navigation(request)
        return render_page(request, "_fleet_live.html", context)
    context["site"] = request.build_absolute_uri("/").rstrip("/")
    return render_page(request, "fleet.html", context)


@anyone_page
def navigation_status(request: PageRequest) -> HttpResponse:
    """Render the counters and dots of the navigation, which replace those of an open page.

    `cluster`: the open one, whose pages have counts.
    """
    require_known(request, {"cluster"})
    if slug := request.GET.get("cluster"):
        request.cluster = visible_cluster(request.actor, slug)
    return render_page(
        request, "_navigation_status.html", {"navigation": navigation(request), "oob": True}
    )


@cluster_page
def actions(request: PageRequest, cluster: Any) -> HttpResponse:
    """Render the dialog with the actions on a cluster."""
    return render_page(request, "_fleet_cluster_dialog.html", {"cluster": cluster})


def _context(request: PageRequest, rows: Sequence[FleetCluster], now: datetime) -> dict[str, Any]:
    is_by_name = request.GET.get("order") == _BY_NAME
    worst = rows[0] if rows and rows[0].assessed.needs_person else None
    shown = sorted(rows, key=lambda row: row.assessed.cluster.name) if is_by_name else rows
    attention = attention_of(worst) if worst is not None else None
    # The card has the only alert of its cluster, with its buttons.
    led = attention["alerts"] if attention is not None else []
    led = [alert.pk for alert in led] if len(led) == 1 else []
    alerts = [alert for row in rows for alert in row.assessed.alerts if alert.pk not in led]
    shown_alerts = alert_rows(alerts, now)
    operated = {
        row.assessed.cluster.pk
        for row in rows
        if request.actor.may(OPERATOR, row.assessed.cluster.pk)
    }
    return {
        "now": now,
        "headline": fleet_headline(rows),
        "attention": attention,
        "briefing": _briefing(request, rows, now) if rows else None,
        "rows": [fleet_row(row) for row in shown],
        "measures": [KINDS[measure].title for measure in SHOWN],
        "is_by_name": is_by_name,
        "alerts": shown_alerts,
        "alert_counts": _counts(shown_alerts),
        "are_led": bool(led),
        "running": [row for row in rows if row.assessed.execution is not None],
        "waiting": [row for row in rows if row.proposal is not None],
        "operated": operated,
        "demos": demo.addable() if request.actor.is_operator else [],
    }


def _briefing(request: PageRequest, rows: Sequence[FleetCluster], now: datetime) -> dict[str, Any]:
    """Return what happened since a moment, which is the title in words."""
    ids = [row.assessed.cluster.pk for row in rows]
    changes = changes_since(ids, last_visit(request.actor, now), now)
    title = f"Since {clock(changes.start, now)}"
    if changes.is_visit:
        title = f"Since your last visit, {clock(changes.start, now)}"
    return {"title": title, "changes": changes}


def _counts(alerts: Sequence[AlertRow]) -> str:
    """Return the number of alerts by state in words: 3 firing, 1 acknowledged."""
    parts = [
        f"{count} {status}"
        for status in (*_HANDLED, AlertStatus.PENDING)
        if (count := sum(row.status is status for row in alerts))
    ]
    return ", ".join(parts) or "none"


def attention_of(row: FleetCluster) -> dict[str, Any]:
    """Return the card of a cluster that needs a person.

    `headline`: its problem, explained at the address `explain`; `plot`: of its worst measure, None
    without values; `alerts`: that fire; `effects`: of the waiting proposal, "" if not known.
    """
    assessed, worst, since = row.assessed, _worst(row), row.assessed.since
    headline = headline_of(assessed)
    return {
        "cluster": assessed.cluster,
        "chip": chip_of(assessed),
        "since": numbers.clock(since, assessed.now) if since is not None else "",
        "held": numbers.duration(assessed.now - since) if since is not None else "",
        "headline": headline,
        "explain": explain_url(assessed.cluster, headline.explain) if headline.explain else "",
        "measure": worst,
        "plot": None if worst is None else _plot(row, worst),
        "proposal": row.proposal,
        "effects": _effects(row),
        "alerts": assessed.firing,
    }


def _worst(row: FleetCluster) -> AlertReading | None:
    """Return the reading to draw: the farthest beyond its limit that has a line."""
    readings = row.assessed.readings
    fired = row.assessed.limits.exceeded
    drawn = [reading for reading in readings.exceeded if reading.measure is not AlertMeasure.AGE]
    drawn.sort(key=lambda reading: str(reading.measure) not in fired)
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


# The measures of the table, in the order of its columns.
SHOWN: Final = (
    AlertMeasure.LATENCY, AlertMeasure.LOAD, AlertMeasure.IMBALANCE, AlertMeasure.REPLICATION,
    AlertMeasure.RECORDS,
)  # fmt: skip
_ICONS: Final = {FleetStatus.EXECUTING: "play", FleetStatus.SILENCED: "clock"}
# Statuses of which an explanation is worth a look.
_EXPLAINED: Final = (
    FleetStatus.EXCEEDED, FleetStatus.PENDING, FleetStatus.NEAR, FleetStatus.ACKNOWLEDGED,
    FleetStatus.SILENCED,
)  # fmt: skip
_CALM: Final = (
    FleetStatus.KEPT, FleetStatus.IDLE, FleetStatus.ACKNOWLEDGED, FleetStatus.SILENCED,
)  # fmt: skip


def fleet_row(row: FleetCluster) -> dict[str, Any]:
    """Return the row of a cluster; `explain`: the subject of its worst measure, "" for none."""
    assessed = row.assessed
    return {
        "fleet": row,
        "assessed": assessed,
        "cluster": assessed.cluster,
        "url": reverse("cluster", args=[assessed.cluster.slug]),
        "chip": chip_of(assessed),
        "cells": [_cell(row, measure) for measure in SHOWN],
        "explain": _explained(assessed),
        "is_stopped": assessed.status is FleetStatus.STOPPED,
        "is_calm": assessed.status in _CALM,
    }


def chip_of(row: ClusterStatus) -> Chip:
    """Return the status of a cluster in a few words."""
    return Chip(row.words, row.level, _ICONS.get(row.status, ""))


def _cell(row: FleetCluster, measure: AlertMeasure) -> dict[str, Any]:
    reading = row.assessed.readings[measure]
    return {
        "reading": reading,
        "value": shown_value(row.assessed.readings, measure),
        "of": _of(row, reading),
        "grade": str(reading.grade) if reading.grade in (Grade.BAD, Grade.WARN) else "",
        "line": row.lines.get(measure, ()),
    }


def _of(row: FleetCluster, reading: AlertReading) -> str:
    """Return what stands beside a value: the node, the bound, the kept part, or the limit."""
    if reading.value is None:
        return ""
    if reading.measure is AlertMeasure.LOAD:
        return f"node {reading.node}" if reading.node is not None else ""
    if reading.measure is AlertMeasure.RECORDS:
        kept = row.assessed.readings[AlertMeasure.KEPT]
        is_dropped = kept.value is not None and kept.value < 1
        return f"{numbers.percent(kept.value)} kept" if is_dropped else ""
    if reading.limit is None:
        return ""
    unmet = ", cannot be met now" if reading.is_unreachable else ""
    return f"of {numbers.value_text(reading.limit, reading.kind.unit)}{unmet}"


def _explained(row: ClusterStatus) -> str:
    """Return what Explain opens: the worst measure, or the nearest to its limit."""
    if row.status not in _EXPLAINED:
        return ""
    readings = [*row.readings.exceeded, *row.readings.near]
    if not readings:
        return ""
    return str(subject_of_measure(readings[0].measure, readings[0].node, row.now))
