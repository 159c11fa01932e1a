"""The explanation of a stream: its rate, its split node, who reads it, what changed."""

from typing import Final

import numpy as np
from django.db.models import Count

from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.catalog.split_reading import partition_parts, shares_of
from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.causes.evidence import Evidence
from controlplane.explain.causes.ranking import ranked_changes
from controlplane.explain.causes.stream_rises import StreamRise, rate_changes
from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.explain.changes import changes_of_node
from controlplane.explain.node_findings import series_of
from controlplane.explain.remedies import stream_remedies
from controlplane.explain.subjects import ExplanationSubject
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import (
    Contribution,
    Contributions,
    Explanation,
    Fact,
    Finding,
    RankedChange,
    Series,
    TimeRelation,
)
from controlplane.models import QueryStream, Stream, Task
from controlplane.pagination.lookup import row_by
from controlplane.telemetry.grid import mean
from controlplane.watch.observation import FULL, ClusterObservation

_LISTED: Final = 5
# No node has this index: only changes of streams are read.
_NO_NODE: Final = -1
_OF_STREAM: Final = (AlertMeasure.LOAD, AlertMeasure.LATENCY)
_OF_ALL: Final = (CauseCode.STREAMS_ROSE,)
_KINDS: Final = (ChangeKind.REDIRECTION, ChangeKind.DROP_RULE, ChangeKind.RESTART)


def explain_stream(evidence: Evidence, subject: ExplanationSubject) -> Explanation:
    """Return the explanation of a stream of the cluster. Raises `NotFound`."""
    observed = evidence.observed
    stream = row_by(Stream.objects.filter(cluster=observed.cluster), "stream", name=subject.name)
    shares = shares_of(observed.cluster, [stream], partition_parts(observed.cluster))[stream.pk]
    loads = {split: _used(observed, split) for split in shares}
    # Of several split nodes that read a source, the fullest.
    split = max(sorted(loads), key=lambda split: loads[split] or 0.0)
    rise, used = _rise(evidence, stream), loads[split]
    rate = None if rise is None else rise.after
    full, dead_band = KINDS[AlertMeasure.LOAD], observed.policy.dead_band
    limit, grade = observed.cluster.split_capacity or None, full.grade(used, FULL, dead_band)
    finding = Finding(
        AlertMeasure.RECORDS, rate, limit, ValueUnit.RATE, "split_capacity" if limit else "",
        full.grade(rate, limit, dead_band),
    )  # fmt: skip
    facts = [
        Fact("split_node", float(split), ValueUnit.COUNT),
        Fact("split_utilisation", used, ValueUnit.SHARE, FULL, grade),
        Fact("queries", QueryStream.objects.filter(stream=stream).count(), ValueUnit.COUNT),
    ]
    return Explanation(
        subject=subject, title=stream.name, time=observed.time, is_live=observed.is_live,
        finding=finding, facts=facts, series=_series(evidence, stream, rise),
        queries=_receivers(stream, rate), changes=_changes(evidence, stream),
        ranked=_ranked(evidence, rise), remedies=stream_remedies(grade),
    )  # fmt: skip


def _rise(evidence: Evidence, stream: Stream) -> StreamRise | None:
    """Return the change of the rate of a stream, None without rates."""
    places = np.flatnonzero(evidence.rises.streams == stream.pk)
    known = len(places) and len(evidence.rises.starts)
    return evidence.rises.row(int(places[0])) if known else None


def _used(observed: ClusterObservation, split: int) -> float | None:
    """Return the used part of the capacity of a split node."""
    used = observed.recent(observed.series["split_utilisation"])
    return mean(used[:, split]) if split < used.shape[1] else None


def _series(evidence: Evidence, stream: Stream, rise: StreamRise | None) -> Series:
    history = evidence.observed.rates
    rates = history.of(stream.pk) if rise is not None else np.zeros(0)
    return series_of(
        evidence.observed, f"Rate of {stream.name}", rates, ValueUnit.RATE,
        evidence.observed.cluster.split_capacity or None, "capacity of a split node", rise,
        [start.timestamp() for start in history.starts],
    )  # fmt: skip


def _receivers(stream: Stream, rate: float | None) -> Contributions | None:
    """Return the nodes that receive the stream, with the number of its readers on each."""
    tasks = Task.objects.filter(query__streams=stream, query__task_count=1)
    counted = tasks.order_by().values("node__name").annotate(n=Count("query", distinct=True))
    rows = sorted(counted.values_list("node__name", "n"), key=lambda row: -row[1])
    total = sum(count for _, count in rows)
    if not total or rate is None:
        return None
    shown = [Contribution(name, rate, count / total) for name, count in rows[:_LISTED]]
    others = sum(count for _, count in rows[_LISTED:])
    left_out = len(rows) - len(shown)
    return Contributions(rate * len(rows), shown, left_out, rate * left_out, others / total)


def _changes(evidence: Evidence, stream: Stream) -> list[NearbyChange]:
    observed, rises = evidence.observed, evidence.rises
    changes = changes_of_node(
        observed.cluster, _NO_NODE, observed.start, observed.until, [stream.pk], evidence.versions
    )
    rates = rate_changes(rises, (rises.streams == stream.pk).astype(np.float64))
    rows = [*(change for change in changes if change.kind in _KINDS), *rates]
    return sorted(rows, key=lambda change: change.time)


def _ranked(evidence: Evidence, rise: StreamRise | None) -> list[RankedChange]:
    """Return the changes of the cluster about the stream, or the rise of its own rate."""
    if rise is None:
        return []
    rows = ranked_changes(evidence, _OF_STREAM)
    rows = [row for row in rows if row.cause.stream == rise.id or row.cause.code in _OF_ALL]
    if rows or rise.time is None or rise.after <= rise.before:
        return rows
    cause = Cause(
        CauseCode.STREAM_ROSE, rise.time, stream=rise.id, stream_name=rise.name,
        before=rise.before, after=rise.after,
    )  # fmt: skip
    size = rise.after - rise.before
    return [RankedChange(cause, size, ValueUnit.RATE, None, TimeRelation.UNKNOWN)]
