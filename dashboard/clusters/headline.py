"""The headline of a cluster: one sentence about its limits, its likely cause, and what to do."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils import timezone

from controlplane import numbers
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import AlertReading, ClusterReadings
from controlplane.explain import likely_causes, subject_of_measure
from controlplane.explain.values import RankedChange
from controlplane.health.summary import is_idle
from controlplane.models import Cluster, Proposal
from dashboard import thresholds
from dashboard.clusters.first_steps import has_records
from dashboard.clusters.status import (
    FIRST_FIGURES,
    backlog_headline,
    is_starting,
    started_at,
    state_title,
)
from dashboard.frame.headline import NO_CAUSE, Headline
from dashboard.frame.readings import phrase

_STOPPED: Final = "Records wait in the log until the cluster is started."
_NO_RECORDS: Final = "The cluster runs and waits for its first records"
_FIRST: Final = "Send some from the page of a stream."
_IDLE: Final = "The cluster is idle: there are no new records"


@dataclass(frozen=True)
class ClusterHeadline(Headline):
    """The headline of a cluster; `why`: the likely cause.

    `explain`: the subject that Explain opens, "" for none; `review`: the proposal that waits for
    approval, None for none.
    """

    explain: str = ""
    review: int | None = None
    may_request: bool = False


def headline_of(
    cluster: Cluster, readings: ClusterReadings, counted: Collection[str] | None = None
) -> ClusterHeadline:
    """Return the headline: of the cluster's state, else of its limits.

    `counted`: the measures whose exceeded limits count, None for all.
    """
    is_running = cluster.state == Cluster.State.RUNNING
    if readings.is_live and not is_running:
        return _of_state(cluster)
    exceeded = [r for r in readings.exceeded if counted is None or str(r.measure) in counted]
    if exceeded:
        return _exceeded(cluster, readings, exceeded)
    if readings.near:
        text = ", ".join(phrase(cluster, reading) for reading in readings.near)
        first = _subject(readings, readings.near[0])
        return ClusterHeadline(
            f"Near a limit: {text}", grade=thresholds.WARN, chip="near a limit", explain=first
        )
    if readings.is_live and is_idle(cluster, timezone.now()):
        idle = _without_records(cluster)
        if idle is not None:
            return idle
    if readings[AlertMeasure.RECORDS].value is None:
        what = "No figures yet" if readings.is_live else "No figures are stored for this time range"
        why = FIRST_FIGURES if readings.is_live else ""
        return ClusterHeadline(what, why, thresholds.UNKNOWN, "no data")
    kept = [r for r in readings.readings if r.limit is not None and r.value is not None]
    values = ", ".join(phrase(cluster, r) for r in kept if r.measure is not AlertMeasure.AGE)
    what, why, grade, chip = "All limits are kept", "", thresholds.GOOD, "all limits kept"
    if not readings.is_graded:
        what, why = "Measured for less than a minute", FIRST_FIGURES
        grade, chip = thresholds.UNKNOWN, "no data"
    return ClusterHeadline(f"{what}: {values}", why, grade, chip)


def _without_records(cluster: Cluster) -> ClusterHeadline | None:
    """Return the headline of an idle cluster, None before its first sample of records."""
    if not has_records(cluster):
        return ClusterHeadline(_NO_RECORDS, _FIRST, thresholds.UNKNOWN, "no records yet")
    if cluster.last_sample_at is None:
        return None
    return ClusterHeadline(_IDLE, grade=thresholds.GOOD, chip="all limits kept")


def _of_state(cluster: Cluster) -> ClusterHeadline:
    state = str(cluster.state)
    if is_starting(cluster):
        now = timezone.now()
        minutes, seconds = divmod(int((now - started_at(cluster, now)).total_seconds()), 60)
        chip = f"starting (Spark, {minutes}:{seconds:02})"
        return ClusterHeadline(
            *state_title(cluster), thresholds.STATES[Cluster.State.STARTING], chip
        )
    if state == Cluster.State.STOPPED:
        return ClusterHeadline("The cluster is stopped", _STOPPED, thresholds.UNKNOWN, state)
    if state == Cluster.State.CATCHING_UP:
        backlog, now = backlog_headline(cluster, timezone.now()), timezone.now()
        ranked = likely_causes(cluster, [AlertMeasure.LATENCY], now=now)
        return ClusterHeadline(
            backlog.what, backlog.why, backlog.grade, backlog.chip,
            explain=f"measure:{AlertMeasure.LATENCY}", review=_waiting(cluster), may_request=True,
        ).explained(ranked)  # fmt: skip
    title, cause = state_title(cluster)
    return ClusterHeadline(title, cause, thresholds.STATES[state], state)


def _exceeded(
    cluster: Cluster, readings: ClusterReadings, exceeded: Sequence[AlertReading]
) -> ClusterHeadline:
    count = len(exceeded)
    since = min((r.since for r in exceeded if r.since is not None), default=None)
    texts = ", ".join(phrase(cluster, reading) for reading in exceeded)
    when = f" since {numbers.clock(since, readings.end)}" if since else ""
    chip = f"{numbers.counted(count, 'limits')} exceeded"
    time = None if readings.is_live else readings.end
    ranked = likely_causes(cluster, [reading.measure for reading in exceeded], time, since)
    return ClusterHeadline(
        grade=thresholds.BAD,
        what=f"{numbers.raised(numbers.count_word(count))} {chip.partition(' ')[2]}{when}: {texts}",
        chip=chip,
        explain=_subject(readings, _explained(exceeded, ranked)),
        review=_waiting(cluster) if readings.is_live else None,
        may_request=readings.is_live,
    ).explained(ranked, NO_CAUSE)


def _explained(exceeded: Sequence[AlertReading], ranked: Sequence[RankedChange]) -> AlertReading:
    """Return the worst of the exceeded limits that the likely cause is about."""
    first = ranked[0].cause if ranked else None
    about = [r for r in exceeded if first is not None and first.explains(r.measure)]
    return (about or exceeded)[0]


def _subject(readings: ClusterReadings, reading: AlertReading) -> str:
    """Return what Explain opens for a reading."""
    return str(subject_of_measure(reading.measure, reading.node, readings.end))


def _waiting(cluster: Cluster) -> int | None:
    """Return the newest proposal that waits for approval."""
    ready = Proposal.awaiting_approval().filter(cluster=cluster)
    return ready.order_by("-pk").values_list("pk", flat=True).first()
