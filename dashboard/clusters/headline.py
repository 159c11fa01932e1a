"""The headline of a cluster: one sentence about its limits, its likely cause, and what to do.

Another one states the state of its Spark application, with the cause.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db.models import Max
from django.urls import reverse

from controlplane import numbers
from controlplane.alerts.measures import AlertMeasure
from controlplane.alerts.readings import AlertReading, ClusterReadings
from controlplane.alerts.states import FAILED_STATES
from controlplane.alerts.statuses import ClusterStatus, FleetStatus, LimitCount
from controlplane.explain import likely_causes, subject_of_measure
from controlplane.explain.values import RankedChange
from controlplane.health.summary import HOUR, BacklogTrend, backlog_trend
from controlplane.models import AuditEntry, Cluster, Proposal
from controlplane.numbers import raised
from dashboard import thresholds
from dashboard.clusters.alert_rows import AlertRow, alert_row
from dashboard.clusters.first_steps import has_records
from dashboard.frame.headline import NO_CAUSE, Headline
from dashboard.frame.readings import phrase
from dashboard.policies.decisions import decision_row

_STOPPED: Final = "Records wait in the log until the cluster is started."
_NO_RECORDS: Final = "The cluster runs and waits for its first records"
_FIRST: Final = "Send some from the page of a stream."
_IDLE: Final = "The cluster is idle: there are no new records"
_FIRST_MINUTE: Final = "Weir checks limits after the first whole minute."


@dataclass(frozen=True)
class ClusterHeadline(Headline):
    """The headline of a cluster; `why`: the likely cause.

    `explain`: the subject that Explain opens, "" for none; `review`: the proposal that waits for
    approval, None for none.
    """

    explain: str = ""
    review: int | None = None
    may_request: bool = False


def headline_of(row: ClusterStatus) -> ClusterHeadline:
    """Return the headline of the present status of a cluster.

    An acknowledged or silenced alert does not hide that the application has failed.
    """
    words = _WORDS.get(row.status, _measured)
    if row.cluster.state in FAILED_STATES and row.status is not FleetStatus.STOPPED:
        words = _of_state
    headline = words(row)
    chip = headline.chip if row.status in _OWN_CHIPS else ""
    return replace(headline, grade=row.level, chip=chip or row.words)


def _measured(row: ClusterStatus) -> ClusterHeadline:
    return range_headline(row.cluster, row.readings)


def _monitored(row: ClusterStatus) -> ClusterHeadline:
    headline = _measured(row)
    names = ", ".join(decision_row(decision).loop for decision in row.monitors)
    texts = ". ".join(decision.text for decision in row.monitors)
    return replace(headline, what=f"{headline.what}; monitor not OK: {names}", why=f"{texts}.")


def _of_state(row: ClusterStatus) -> ClusterHeadline:
    return ClusterHeadline(*state_title(row.cluster))


def _starting(row: ClusterStatus) -> ClusterHeadline:
    started = row.now - started_at(row.cluster, row.now)
    minutes, seconds = divmod(int(started.total_seconds()), 60)
    # Nothing records a later start, as of the whole site.
    chip = f"starting (Spark, {minutes}:{seconds:02})" if started < HOUR else ""
    return ClusterHeadline(*state_title(row.cluster), chip=chip)


def _stopped(_: ClusterStatus) -> ClusterHeadline:
    return ClusterHeadline("The cluster is stopped", _STOPPED)


def _backlog(row: ClusterStatus) -> ClusterHeadline:
    what, why = backlog_title(row.cluster, row.now)
    ranked = likely_causes(row.cluster, [AlertMeasure.LATENCY], now=row.now)
    return ClusterHeadline(
        what, why, explain=f"measure:{AlertMeasure.LATENCY}", review=_waiting(row.cluster),
        may_request=True,
    ).explained(ranked)  # fmt: skip


def _pending(row: ClusterStatus) -> ClusterHeadline:
    pending = [r for r in row.readings.exceeded if str(r.measure) in row.limits.pending]
    hold = f"An alert fires if it lasts {row.readings.policy.alert_hold_s:g} s."
    return replace(_limits_exceeded(row.readings, pending), why=hold)


def _handled(row: ClusterStatus) -> ClusterHeadline:
    if not row.readings.exceeded:
        return _measured(row)
    return _limits_exceeded(row.readings, row.readings.exceeded, f", {row.status}")


def _idle(row: ClusterStatus) -> ClusterHeadline:
    """Return the headline of an idle cluster, also before its first records."""
    if has_records(row.cluster):
        return ClusterHeadline(_IDLE)
    return ClusterHeadline(_NO_RECORDS, _FIRST, chip="no records yet")


def _exceeded(row: ClusterStatus) -> ClusterHeadline:
    """Return the headline of the limits whose alerts fire, with what waits for a person."""
    cluster = row.cluster
    exceeded = [r for r in row.readings.exceeded if str(r.measure) in row.limits.exceeded]
    if not exceeded:
        return _firing(alert_row(row.firing[0], row.now), row.readings)
    headline = _limits_exceeded(row.readings, exceeded)
    beside = [alert.detail for alert in row.firing if alert.detail]
    if cluster.state == Cluster.State.CATCHING_UP:
        beside.append(backlog_title(cluster, row.now)[0])
    why = " ".join([headline.why, *(f"{text}." for text in beside)])
    if all(reading.measure is AlertMeasure.AGE for reading in exceeded):
        return _without_plan(replace(headline, why=why))
    return replace(headline, why=why, review=_waiting(cluster), may_request=True)


def _without_plan(headline: ClusterHeadline) -> ClusterHeadline:
    """Return the headline with what helps where no plan does."""
    return replace(headline, link=reverse("system"), link_title="Check processes")


def _firing(row: AlertRow, readings: ClusterReadings) -> ClusterHeadline:
    """Return the headline of an alert that fires without a mean beyond its limit."""
    what, detail = f"{row.title} since {row.since}", row.alert.detail
    if not row.subject:
        return ClusterHeadline(what, f"{detail}." if detail else "")
    what += f": {row.value} at its last check, limit {row.limit}"
    kind, policy = readings[row.alert.subject].kind, readings.policy
    near = kind.near(row.alert.limit or 0.0, policy.dead_band)
    side = "above" if kind.is_lower else "below"
    why = (
        "The mean of the last minute is within the limit: the alert ends after"
        f" {policy.alert_hold_s:g} s {side} {numbers.value_text(near, kind.unit)}."
    )
    if row.alert.subject == AlertMeasure.AGE:
        why = "The alert ends with the next sample."
        return _without_plan(ClusterHeadline(what, why, explain=row.subject))
    return ClusterHeadline(what, why, explain=row.subject)


# Their pages show more than the status: the seconds since the start, and that records never came.
_OWN_CHIPS: Final = (FleetStatus.STARTING, FleetStatus.IDLE)
_WORDS: Final = {
    FleetStatus.FAILED: _exceeded,
    FleetStatus.EXCEEDED: _exceeded,
    FleetStatus.PENDING: _pending,
    FleetStatus.BACKLOG: _backlog,
    FleetStatus.DEGRADED: _of_state,
    FleetStatus.ACKNOWLEDGED: _handled,
    FleetStatus.SILENCED: _handled,
    FleetStatus.MONITOR: _monitored,
    FleetStatus.STARTING: _starting,
    FleetStatus.IDLE: _idle,
    FleetStatus.STOPPED: _stopped,
}


def range_headline(cluster: Cluster, readings: ClusterReadings) -> ClusterHeadline:
    """Return the headline of a period by its limits."""
    if readings.exceeded:
        return _limits_exceeded(readings, readings.exceeded)
    if readings.near:
        text = ", ".join(phrase(cluster, reading) for reading in readings.near)
        first = _subject(readings, readings.near[0])
        return ClusterHeadline(
            f"Near a limit: {text}", grade=thresholds.WARN, chip=FleetStatus.NEAR, explain=first
        )
    if readings[AlertMeasure.RECORDS].value is None:
        what = "No figures yet" if readings.is_live else "No figures are stored for this time range"
        why = FIRST_FIGURES if readings.is_live else ""
        return ClusterHeadline(what, why, thresholds.UNKNOWN, FleetStatus.NO_DATA)
    kept = [r for r in readings.readings if r.limit is not None and r.value is not None]
    values = ", ".join(phrase(cluster, r) for r in kept if r.measure is not AlertMeasure.AGE)
    if not readings.is_graded:
        what = f"Measured for less than a minute: {values}"
        return ClusterHeadline(what, _FIRST_MINUTE, chip=FleetStatus.MEASURING)
    return ClusterHeadline(f"All limits are kept: {values}", "", thresholds.GOOD, FleetStatus.KEPT)


def _limits_exceeded(
    readings: ClusterReadings, exceeded: Sequence[AlertReading], handled: str = ""
) -> ClusterHeadline:
    cluster, chip = readings.cluster, LimitCount([str(r.measure) for r in exceeded]).text
    since = min((r.since for r in exceeded if r.since is not None), default=None)
    texts = ", ".join(phrase(cluster, reading) for reading in exceeded)
    when = f" since {numbers.clock(since, readings.end)}" if since else ""
    time = None if readings.is_live else readings.end
    ranked = likely_causes(cluster, [reading.measure for reading in exceeded], time, since)
    words = f"{numbers.raised(numbers.count_word(len(exceeded)))} {chip.partition(' ')[2]}"
    return ClusterHeadline(
        grade=thresholds.BAD,
        what=f"{words}{when}{handled}: {texts}",
        chip=chip,
        explain=_subject(readings, _explained(exceeded, ranked)),
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


# The titles of states other than running.
_STATES: Final = {
    Cluster.State.CRASH_LOOP: "The Spark application fails repeatedly",
    Cluster.State.STUCK: "The Spark application makes no progress",
    Cluster.State.NEEDS_DECISION: "An incident needs a decision",
    Cluster.State.FAILED: "The Spark application failed",
    Cluster.State.STARTING: "The Spark application starts",
    Cluster.State.CATCHING_UP: "The cluster has a backlog",
    Cluster.State.DEGRADED: "The cluster runs with an error",
}
FIRST_FIGURES: Final = "Figures appear with the first micro-batch, 20 to 40 s after the start."


def is_starting(cluster: Cluster) -> bool:
    """Return True until the Spark application of a cluster that shall run has started."""
    if cluster.state != Cluster.State.STOPPED:
        return cluster.state == Cluster.State.STARTING
    return cluster.desired == Cluster.Desired.RUNNING


def started_at(cluster: Cluster, now: datetime) -> datetime:
    """Return since when the application of a cluster starts, or a person waits for its start."""
    started = AuditEntry.objects.filter(cluster=cluster, action="cluster.start")
    times = started.aggregate(last=Max("at"))["last"], cluster.state_at
    return min(now, max(filter(None, times), default=cluster.created_at))


def state_title(cluster: Cluster) -> tuple[str, str]:
    """Return the sentence about a state other than running and stopped, and its cause."""
    cause = cluster.state_detail
    if is_starting(cluster):
        cause = f"{cause}. {FIRST_FIGURES}" if cause else FIRST_FIGURES
    state = Cluster.State.STARTING if is_starting(cluster) else Cluster.State(cluster.state)
    return _STATES[state], _sentence(cause)


def backlog_title(cluster: Cluster, now: datetime) -> tuple[str, str]:
    """Return the sentence about a backlog, whether it shrinks and the time left, and its cause."""
    title, cause = state_title(cluster)
    trend = backlog_trend(cluster, now)
    if trend is BacklogTrend.GROWS:
        title = "The cluster cannot keep up with its input: its backlog does not shrink"
    elif trend is BacklogTrend.SHRINKS:
        left = numbers.seconds(cluster.health.drained_s)
        title = f"The cluster catches up with its backlog: about {left} left"
    return title, cause


def _sentence(text: str) -> str:
    """Return the text as a sentence, with a capital and a full stop."""
    if not text:
        return ""
    return raised(text) + ("" if text.endswith((".", ")", "!")) else ".")
