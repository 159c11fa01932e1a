"""Rows of the fleet's table: status, measures with limits and lines, and the recommended action."""

from typing import Any, Final

from django.urls import reverse

from controlplane import numbers
from controlplane.alerts.fleet import FleetCluster
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import AlertReading
from controlplane.alerts.statuses import ClusterStatus, FleetStatus
from controlplane.explain import subject_of_measure
from controlplane.policies.grades import Grade
from dashboard.frame.tile import Chip

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
