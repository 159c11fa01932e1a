"""Readings of a cluster as tiles, with trend, limit and bound, and in words."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from controlplane import numbers
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import AlertReading, ClusterReadings
from controlplane.health.summary import is_idle
from controlplane.models import Cluster, Node
from controlplane.policies.grades import Grade
from controlplane.telemetry.measures import MeasureMeans, lines_between, means_between
from controlplane.telemetry.series import start_of
from dashboard.frame.tile import Tile

DAY: Final = timedelta(days=1)
# The length of the means among which the last one is searched.
_LAST_S: Final = 300
# Values of a cluster that receives nothing.
_IDLE: Final = {
    AlertMeasure.LOAD: 0.0, AlertMeasure.IMBALANCE: 0.0, AlertMeasure.RECORDS: 0.0,
    AlertMeasure.KEPT: 1.0,
}  # fmt: skip
# The measures of the tiles, and the part of the page that shows each over time.
SHOWN: Final = {
    AlertMeasure.LATENCY: "latency",
    AlertMeasure.LOAD: "heat",
    AlertMeasure.IMBALANCE: "imbalance",
    AlertMeasure.REPLICATION: "replication",
    AlertMeasure.RECORDS: "records",
    AlertMeasure.KEPT: "records",
}


def tiles_of(readings: ClusterReadings) -> list[Tile]:
    """Return the tiles in the order of the page; without records now, the last ones of the day."""
    last, note = MeasureMeans(), ""
    if readings.is_live and readings[AlertMeasure.LATENCY].value is None:
        end = start_of(readings.end, _LAST_S) + timedelta(seconds=_LAST_S)
        start, cluster = end - DAY, readings.cluster.pk
        line = lines_between([cluster], start, end, _LAST_S)[cluster]
        for place, means in enumerate(line, 1):
            if means.latency_p95 is not None:
                time = min(start + timedelta(seconds=place * _LAST_S), readings.end)
                last, note = means, f"last value, {numbers.clock(time, readings.end)}"
    tiles = []
    for measure in SHOWN:
        tile = tile_of(readings, measure)
        if tile.value is None and (value := getattr(last, measure)) is not None:
            tile = replace(_tile(readings, replace(readings[measure], value=value)), note=note)
        tiles.append(tile)
    return tiles


def tile_of(readings: ClusterReadings, measure: AlertMeasure) -> Tile:
    """Return the tile of one measure."""
    value = shown_value(readings, measure)
    return _tile(readings, replace(readings[measure], value=value))


def shown_value(readings: ClusterReadings, measure: AlertMeasure) -> float | None:
    """Return a value; of an idle cluster what is true without records, though nothing measures it.

    None if nothing is known.
    """
    value = readings[measure].value
    is_known = value is not None or not readings.is_live or measure not in _IDLE
    return value if is_known or not is_idle(readings.cluster, readings.end) else _IDLE[measure]


def _tile(readings: ClusterReadings, reading: AlertReading) -> Tile:
    value, unit = "no data", ""
    if reading.value is not None:
        value, unit = numbers.with_unit(reading.value, reading.kind.unit)
    is_bad = reading.grade in (Grade.BAD, Grade.WARN)
    return Tile(
        reading.kind.title, value, unit, _trend(readings, reading), _limit(readings, reading),
        reading.value, reading.limit, reading.reachable,
        top=1.0 if reading.kind.is_lower else None,
        grade=str(reading.grade) if is_bad else "",
        link=f"#{SHOWN[reading.measure]}",
        name=str(reading.measure),
    )  # fmt: skip


def _trend(readings: ClusterReadings, reading: AlertReading) -> str:
    if reading.value is None or readings[reading.measure].value is None:
        return "no records" if reading.measure is AlertMeasure.RECORDS else ""
    changed = ""
    if reading.before is not None:
        changed = numbers.change(reading.value, reading.before, reading.kind.unit)
    if reading.measure is AlertMeasure.LOAD and reading.node is not None:
        return f"{node_name(readings.cluster, reading.node)}{changed and ', '}{changed}"
    if (
        reading.measure is AlertMeasure.KEPT
        and reading.value >= 1.0
        and (reading.before or 1.0) >= 1.0
    ):
        return "nothing dropped"
    return changed


def _limit(readings: ClusterReadings, reading: AlertReading) -> str:
    if reading.measure is AlertMeasure.RECORDS:
        return _yesterday(readings.cluster, readings.end, readings.period)
    if reading.limit is None:
        return "limit is being computed"
    value = " ".join(numbers.with_unit(reading.limit, reading.kind.unit)).strip()
    if reading.kind.is_lower:
        return f"minimum kept {value}"
    return f"limit {value}{reachable_text(reading)}"


def reachable_text(reading: AlertReading) -> str:
    """Return what placement reaches of the replication factor, and where it reaches no limit."""
    best = numbers.value_text(reading.reachable, reading.kind.unit)
    if reading.is_unreachable:
        return f", cannot be met now: best reachable {best}"
    return f", best reachable {best}" if reading.measure is AlertMeasure.REPLICATION else ""


def _yesterday(cluster: Cluster, end: datetime, period: timedelta) -> str:
    """Return the records/s of the same period one day before, in words."""
    now, _ = means_between([cluster.pk], end - period - DAY, end - DAY)[cluster.pk]
    if now.records_in is None:
        return "no limit"
    return f"no limit; a day before {numbers.compact(now.records_in)}/s"


def node_name(cluster: Cluster, index: int) -> str:
    """Return the name of a node, also if it was removed."""
    name = Node.objects.filter(cluster=cluster, index=index).values_list("name", flat=True).first()
    return name or f"node {index}"


def phrase(cluster: Cluster, reading: AlertReading) -> str:
    """Return a reading in words: node 5 at 103 % of its capacity, imbalance 46 %."""
    value = "".join(
        f"{'' if part in ('', '/s') else ' '}{part}" if place else part
        for place, part in enumerate(numbers.with_unit(reading.value, reading.kind.unit))
    )
    match reading.measure:
        case AlertMeasure.LOAD if reading.node is not None:
            return f"{node_name(cluster, reading.node)} at {value} of its capacity"
        case AlertMeasure.KEPT:
            return f"{value} of the input kept"
        case AlertMeasure.AGE:
            return f"no data for {value}"
    return f"{numbers.lowered(reading.kind.title)} {value}"


def span_text(readings: ClusterReadings) -> str:
    """Return the period of the tiles: 10:41:10 to 10:46:10 UTC."""
    start = readings.end - readings.period
    days = "" if start.date() == readings.end.date() else "%Y-%m-%d "
    return f"{start:{days}%H:%M:%S} to {readings.end:{days}%H:%M:%S} UTC"
