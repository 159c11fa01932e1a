"""The explanation of a stream: its rate, its split node, who reads it, what changed."""

from typing import Final

import numpy as np
from django.db.models import Count

from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.explain.cause import Cause, CauseCode
from controlplane.explain.change import ChangeKind, NearbyChange
from controlplane.explain.changes import changes_of_node
from controlplane.explain.node_findings import series_of
from controlplane.explain.observation import FULL, ClusterObservation, mean
from controlplane.explain.stream_rises import StreamRise, stream_rises
from controlplane.explain.subjects import ExplanationSubject
from controlplane.explain.units import ValueUnit
from controlplane.explain.values import (
    Contribution,
    Contributions,
    Explanation,
    Fact,
    Finding,
    Remedy,
    RemedyReason,
    Series,
)
from controlplane.models import QueryStream, Stream, Task
from controlplane.pagination.lookup import row_by
from controlplane.planning.adapters import adapters
from controlplane.policies.grades import Grade

_LISTED: Final = 5
# The planner that redirects streams.
_ADMISSION: Final = "admission"
# No node has this index: only changes of streams are read.
_NO_NODE: Final = -1


def explain_stream(observed: ClusterObservation, subject: ExplanationSubject) -> Explanation:
    """Return the explanation of a stream of the cluster. Raises `NotFound`."""
    rows = Stream.objects.filter(cluster=observed.cluster)
    stream = row_by(rows, "stream", name=subject.name)
    rises = stream_rises(observed, {stream.pk: 1.0}, {stream.pk: stream.name})
    rise = rises.row(0) if len(rises) else None
    used = _split_share(observed, stream.split)
    readers = QueryStream.objects.filter(stream=stream)
    limit = None if not observed.cluster.split_capacity else observed.cluster.split_capacity
    rate = None if rise is None else rise.after
    finding = Finding(
        AlertMeasure.RECORDS, rate, limit, ValueUnit.RATE, "split_capacity" if limit else "",
        KINDS[AlertMeasure.LOAD].grade(rate, limit, observed.policy.dead_band),
    )  # fmt: skip
    grade = KINDS[AlertMeasure.LOAD].grade(used, FULL, observed.policy.dead_band)
    return Explanation(
        subject=subject,
        title=stream.name,
        time=observed.time,
        is_live=observed.is_live,
        finding=finding,
        facts=[
            Fact("split_node", float(stream.split), ValueUnit.COUNT),
            Fact("split_utilisation", used, ValueUnit.SHARE, FULL, grade),
            Fact("queries", readers.count(), ValueUnit.COUNT),
        ],
        series=_series(observed, stream, rise),
        queries=_receivers(stream, rate),
        changes=_changes(observed, stream, rise),
        cause=_cause(rise),
        remedies=_remedies(grade),
    )


def _split_share(observed: ClusterObservation, split: int) -> float | None:
    """Return the used part of the capacity of a split node."""
    used = observed.recent(observed.series.splits)
    return mean(used[:, split]) if split < used.shape[1] else None


def _series(observed: ClusterObservation, stream: Stream, rise: StreamRise | None) -> Series:
    history = observed.rates([stream.pk])
    rates = history.rates[0] if history.rates.shape[1] else np.zeros(0)
    return series_of(
        observed, f"Rate of {stream.name}", rates, ValueUnit.RATE,
        observed.cluster.split_capacity or None, "capacity of a split node", rise,
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


def _changes(
    observed: ClusterObservation, stream: Stream, rise: StreamRise | None
) -> list[NearbyChange]:
    changes = [
        change
        for change in changes_of_node(
            observed.cluster, _NO_NODE, observed.start, observed.time, [stream.pk]
        )
        if change.kind in (ChangeKind.REDIRECTION, ChangeKind.DROP_RULE, ChangeKind.RESTART)
    ]
    if rise is not None and rise.time is not None:
        changes.append(
            NearbyChange(
                ChangeKind.RATE, rise.time, stream.name, stream.pk, before=rise.before,
                after=rise.after,
            )
        )  # fmt: skip
    return sorted(changes, key=lambda change: change.time)


def _cause(rise: StreamRise | None) -> Cause | None:
    if rise is None or rise.time is None or rise.after <= rise.before:
        return None
    return Cause(
        CauseCode.STREAM_ROSE, time=rise.time,
        stream=rise.id, stream_name=rise.name, before=rise.before, after=rise.after,
    )  # fmt: skip


def _remedies(grade: Grade) -> list[Remedy]:
    adapter = adapters().get(_ADMISSION)
    if adapter is None or grade not in (Grade.BAD, Grade.WARN):
        return []
    reason = RemedyReason.SPLIT_NODE_FULL
    return [Remedy(adapter.name, adapter.effect, reason, is_best=True)]
