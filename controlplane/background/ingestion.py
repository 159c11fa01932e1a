"""Ingestion of telemetry: samples are computed, published to browsers and stored.

`store` also updates drop rules, executions, failed queries and skipped batches, which depend on
what the data plane reports.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from django.db import connection, transaction
from django.db.models import F, Min
from django.utils import timezone

from controlplane.events import traces
from controlplane.events.publish import send_samples
from controlplane.health import failed_queries, stuck_batches
from controlplane.health.summary import SEEN
from controlplane.models import Cluster, Node, Query, RoutingVersion, Stream
from controlplane.pagination.chunks import update_rows
from controlplane.planners.shedding import history as shedding_history
from controlplane.planning.measures import REPLICATION_FACTOR
from controlplane.policies.measure_limits import cluster_limits
from controlplane.policies.store import policy_of
from controlplane.proposals.executions import acknowledgement
from controlplane.results import edge_periods
from controlplane.telemetry import arrivals, series, time_series
from controlplane.telemetry.arrivals import ArrivalInterval
from controlplane.telemetry.grid import RAW, mean
from controlplane.telemetry.samples import PreviousBatch, Row, Sample, moment_of, sample_of
from controlplane.telemetry.time_series import latest_values
from controlplane.topology import drop_rule_housekeeping
from controlplane.watch.series_shifts import largest_shifts

# The time constant of stream rates (63 % of a change). Faster rates would make plans, which take
# minutes to review and execute, stale by noise.
RATE_TIME_CONSTANT_S = 120.0
# The rates of an idle cluster decay once in so many seconds.
IDLE_DECAY_S = 10.0
# A step is searched in the arrivals of so many periods, three minutes.
STEP_PERIODS = 18
# Samples of so much later than now are of a clock that ran ahead.
AHEAD = timedelta(minutes=1)
# Below this rate a stream counts as silent, and its declared rate is used.
SILENT = 1e-3


@dataclass(frozen=True)
class RelayPositions:
    """The relay's positions in the two Redis streams; "" for no change.

    `stored`: that of telemetry which the relay knows in the database, "" for any.
    """

    telemetry: str = ""
    progress: str = ""
    stored: str = ""


class RelaySuperseded(Exception):
    """Another relay has stored telemetry since this one has read the positions."""


def record(
    cluster: Cluster,
    rows: Sequence[Row],
    positions: RelayPositions = RelayPositions(),
    batch_ms: float | None = None,
) -> list[Sample]:
    """Publish and store the samples of telemetry rows; return them, oldest first."""
    measured = measure(cluster, rows, batch_ms)
    send_samples(cluster.pk, measured.samples)
    store(cluster, rows, measured, positions)
    return measured.samples


@dataclass(frozen=True)
class TelemetrySamples:
    """The samples of telemetry rows, and the intervals in which their records arrived."""

    samples: list[Sample]
    intervals: list[ArrivalInterval | None]


def measure(
    cluster: Cluster, rows: Sequence[Row], batch_ms: float | None = None
) -> TelemetrySamples:
    """Return the samples of telemetry rows that are newer than the stored samples."""
    nodes = Node.objects.filter(cluster=cluster).order_by("index")
    capacities = [node.capacity if node.active else None for node in nodes]
    limit = cluster_limits(cluster, policy_of(cluster)).get(REPLICATION_FACTOR.name)
    emitted_ms = _newest_ms(cluster)
    intervals = arrivals.intervals(cluster, rows) if rows else []
    samples = []
    for row, interval in zip(rows, intervals, strict=True):
        rate = None if interval is None else interval.rate
        before = PreviousBatch(emitted_ms, cluster.trigger_ms, batch_ms, rate)
        samples.append(sample_of(row, before, capacities) | {"rf_limit": limit})
        emitted_ms = row["emitted_ms"]
    return TelemetrySamples(samples, intervals)


def _newest_ms(cluster: Cluster) -> int | None:
    """Return the time of the newest sample; delete samples of a clock that ran ahead."""
    newest: int | None = (latest_values(cluster) or {}).get("t")
    limit = timezone.now() + AHEAD
    if newest is None or moment_of(newest) <= limit:
        return newest
    series.forget_after(cluster, limit)
    return (latest_values(cluster) or {}).get("t")


@transaction.atomic
def store(
    cluster: Cluster, rows: Sequence[Row], measured: TelemetrySamples, positions: RelayPositions
) -> None:
    """Save samples, positions and acknowledged steps in one transaction.

    Raises `RelaySuperseded`.
    """
    samples = measured.samples
    time_series.record(cluster, samples)
    columns: dict[str, object] = {}
    if positions.telemetry:
        columns["telemetry_position"] = positions.telemetry
    if positions.progress:
        columns["progress_position"] = positions.progress
    if rows:
        columns["last_batch"] = rows[-1]["batch"]
        columns["last_sample_at"] = moment_of(samples[-1]["t"])
        columns["read_position"] = rows[-1].get("read_position") or ""
    if columns:
        known = {"telemetry_position": positions.stored} if positions.stored else {}
        changed = Cluster.objects.filter(pk=cluster.pk, **known).update(**columns)
        if known and not changed and Cluster.objects.filter(pk=cluster.pk).exists():
            raise RelaySuperseded
    if rows:
        arrivals.count(cluster, rows, measured.intervals)
        drop_rule_housekeeping.count(cluster.pk, rows, samples)
        shedding_history.record(cluster, rows, samples)
        edge_periods.record(cluster, rows)
        count_late(cluster, rows)
        _acknowledge(cluster, rows)
        acknowledgement.acknowledge(cluster, rows, samples)
        failed_queries.end_failed(cluster, rows)
        stuck_batches.record_done(cluster, rows)


def update_rates(cluster: Cluster, records: Mapping[int, float], seconds: float) -> int:
    """Update the measured rates from the records that arrived per stream; return how many.

    `seconds`: the time in which they arrived (`arrivals.intervals`). Rates are exponentially
    weighted means, so that silent streams decay. A stream that is counted for less than the time
    constant has the mean since then: since its creation, or since the first batch of the cluster,
    whose own records may have waited for hours and are not counted. After a step, a stream has the
    mean since then.
    """
    now = timezone.now()
    first = series.stored([cluster.pk], [""], RAW).aggregate(t=Min("t"))["t"]
    # In the order of their ids, as all updates of many streams.
    streams = Stream.objects.filter(cluster=cluster).order_by("id")
    known = streams.values_list("id", "rate", "created_at")
    levels, changes = _levels_after_steps(cluster), []
    for stream, rate, created in known:
        age = max(seconds, (now - max(created, first or created)).total_seconds())
        updated = _updated_rate(rate, records.get(stream, 0), seconds, age)
        if stream in levels:
            updated = levels[stream] if levels[stream] > SILENT else 0.0
        if updated != rate:
            changes.append((updated, stream))
    update_rows(Stream, "rate = %s", changes)
    return len(changes)


def _levels_after_steps(cluster: Cluster) -> dict[int, float]:
    """Return the mean rate since the newest step of each stream that has had one lately."""
    known = arrivals.history(cluster, STEP_PERIODS)
    steps = largest_shifts(known.rates)
    levels: dict[int, float] = {}
    for place in np.flatnonzero(steps.are_sure).tolist():
        # A part of the first period may be before the step; others may not be stored.
        level = mean(known.rates[place, steps.places[place] + 1 :])
        if level is not None:
            levels[int(known.streams[place])] = level
    return levels


def _updated_rate(rate: float | None, records: float, seconds: float, age: float) -> float | None:
    if rate is None:
        return records / (age if age < RATE_TIME_CONSTANT_S else seconds) or None
    weight = 1 - math.exp(-seconds / min(age, RATE_TIME_CONSTANT_S))
    updated = rate + weight * (records / seconds - rate)
    return updated if updated > SILENT else 0.0


def decay_idle_rates(now: datetime) -> None:
    """Let the rates of streams of idle clusters decay: no batch updates them."""
    # By then the next batch, which counts from the last one, replaces the rates anyway.
    since = now - timedelta(seconds=3 * RATE_TIME_CONSTANT_S)
    idle = Cluster.objects.filter(
        state=Cluster.State.RUNNING, health__unread=0, health__observed_at__gt=now - SEEN,
        last_sample_at__lt=since,
    )  # fmt: skip
    with transaction.atomic():
        # In the order of their ids, as all updates of many rows.
        rows = Stream.objects.filter(cluster__in=idle, rate__gt=0).order_by("pk")
        ids = list(rows.select_for_update(of=("self",)).values_list("pk", flat=True))
        rates = Stream.objects.filter(pk__in=ids)
        rates.filter(rate__lte=SILENT).update(rate=0.0)
        rates.update(rate=F("rate") * math.exp(-IDLE_DECAY_S / RATE_TIME_CONSTANT_S))


def count_late(cluster: Cluster, rows: Sequence[Row]) -> None:
    """Add late records to the totals of streams and queries; `late_at`: of the newest row."""
    late_at = connection.ops.adapt_datetimefield_value(moment_of(rows[-1]["emitted_ms"]))
    for model, name in ((Stream, "late_streams"), (Query, "late_queries")):
        totals: Counter[str] = Counter()
        for row in rows:
            totals.update(row.get(name, {}))
        # In the order of their ids, as all updates of many rows.
        changes = sorted((int(pk), records) for pk, records in totals.items())
        table = connection.ops.quote_name(model._meta.db_table)  # noqa: SLF001 - public API
        with connection.cursor() as cursor:
            cursor.executemany(
                f"UPDATE {table} SET late_records = late_records + %s, late_at = %s"  # noqa: S608
                " WHERE id = %s AND cluster_id = %s",
                [(records, late_at, pk, cluster.pk) for pk, records in changes],
            )


def _acknowledge(cluster: Cluster, rows: Sequence[Row]) -> None:
    """Record that the pipeline runs a version, and mark the versions up to it as applied.

    A version that was never decided is not one.
    """
    version = max(row["version"] for row in rows)
    behind = Cluster.objects.filter(
        pk=cluster.pk, applied_version__lt=version, routing_version__gte=version
    )
    if behind.update(applied_version=version) != 1:
        return
    waiting = RoutingVersion.objects.filter(cluster=cluster, version__lte=version, applied_at=None)
    for traced in waiting.exclude(traceparent=""):
        _trace(cluster, traced, rows)
    waiting.update(applied_at=datetime.now(UTC))


def _trace(cluster: Cluster, version: RoutingVersion, rows: Sequence[Row]) -> None:
    """Record the spans of a version, from its decision on, and of the first batch that has it."""
    row = next(row for row in rows if row["version"] >= version.version)
    end = moment_of(row["emitted_ms"])
    about = {"weir.cluster": cluster.slug, "weir.version": version.version}
    parent = traces.record("routing version", version.traceparent, version.created_at, end, **about)
    start = moment_of(row.get("read_ms") or row["emitted_ms"])
    traces.record("batch", parent, start, end, **about, **{"weir.batch": row["batch"]})
