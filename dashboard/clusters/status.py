"""The state of a cluster's Spark application as a sentence, with its cause."""

from datetime import datetime
from typing import Final

from django.db.models import Max

from controlplane import numbers
from controlplane.health.summary import BacklogTrend, backlog_trend
from controlplane.models import AuditEntry, Cluster
from controlplane.numbers import raised

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
    """Return when a cluster that starts was started last, by a person or by Weir."""
    started = AuditEntry.objects.filter(cluster=cluster, action="cluster.start")
    restarted = cluster.restarts.aggregate(last=Max("at"))["last"]
    times = (cluster.created_at, started.aggregate(last=Max("at"))["last"], restarted)
    return max((time for time in times if time is not None), default=now)


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
