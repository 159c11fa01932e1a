"""Status of a cluster or of the fleet: a sentence about limits, with its cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from controlplane.health.summary import is_idle
from controlplane.models import Cluster
from dashboard import numbers, thresholds

# The titles of states other than running.
_STATES: Final = {
    Cluster.State.CRASH_LOOP: "The Spark application fails repeatedly",
    Cluster.State.STUCK: "The Spark application makes no progress",
    Cluster.State.NEEDS_DECISION: "An incident needs a decision",
    Cluster.State.FAILED: "The Spark application failed",
    Cluster.State.STARTING: "The Spark application starts",
    Cluster.State.CATCHING_UP: "The cluster catches up with its backlog",
    Cluster.State.DEGRADED: "The cluster runs with an error",
}
FIRST_FIGURES: Final = "Figures appear with the first micro-batch, 20 to 40 s after the start."
_IDLE: Final = "The cluster is idle: there are no new records"
_NO_RECORDS: Final = "Figures are those of the last micro-batch."
_START: Final = "Start a cluster on its page."
_STOPPED: Final = "Records wait in the log until the cluster is started."


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A level, its sentence, and the cause or consequence."""

    grade: str
    title: str
    cause: str = ""


def cluster_status(cluster: Cluster, sample: Mapping[str, Any], now: datetime) -> ClusterStatus:
    """Return the status of a cluster, from its state or from the limits of its measures."""
    state = cluster.state
    if state == Cluster.State.STOPPED:
        return ClusterStatus(thresholds.UNKNOWN, "The cluster is stopped", _STOPPED)
    if state in _STATES:
        return ClusterStatus(thresholds.STATES[state], *state_title(cluster))
    status = _by_limits(_measures(cluster, sample, now))
    if status.grade == thresholds.GOOD and _is_old(cluster, now):
        return ClusterStatus(thresholds.GOOD, _IDLE, _NO_RECORDS)
    return status


def state_title(cluster: Cluster) -> tuple[str, str]:
    """Return the sentence about a state other than running and stopped, and its cause."""
    cause = cluster.state_detail
    if cluster.state == Cluster.State.STARTING:
        cause = f"{cause}. {FIRST_FIGURES}" if cause else FIRST_FIGURES
    return _STATES[Cluster.State(cluster.state)], _sentence(cause)


def _is_old(cluster: Cluster, now: datetime) -> bool:
    seen = cluster.last_sample_at
    return (
        seen is not None and thresholds.AGE_S.grade((now - seen).total_seconds()) != thresholds.GOOD
    )


def fleet_status(statuses: Sequence[tuple[str, ClusterStatus]]) -> ClusterStatus:
    """Return the status of the fleet; `statuses`: of the clusters by name."""
    bad = [(name, status) for name, status in statuses if status.grade == thresholds.BAD]
    watched = [(name, status) for name, status in statuses if status.grade == thresholds.WARN]
    cause = " ".join(f"{name}: {_lowered(status.title)}." for name, status in bad + watched)
    count = len(statuses)
    clusters = f"cluster{'' if count == 1 else 's'}"
    if bad:
        title = f"{len(bad)} of {count} {clusters} need{'s' if len(bad) == 1 else ''} attention"
        return ClusterStatus(thresholds.BAD, title, cause)
    if watched:
        return ClusterStatus(
            thresholds.WARN, f"{len(watched)} of {count} {clusters} to watch", cause
        )
    running = sum(status.grade == thresholds.GOOD for _, status in statuses)
    if not running:
        return ClusterStatus(thresholds.UNKNOWN, "No cluster is running", _START)
    if running == 1:
        return ClusterStatus(thresholds.GOOD, "The running cluster is within its limits")
    return ClusterStatus(thresholds.GOOD, f"All {running} running clusters are within their limits")


def _measures(cluster: Cluster, sample: Mapping[str, Any], now: datetime) -> list[tuple[str, str]]:
    """Return (grade, sentence) of each measure that has a value."""
    graded = []
    if (imbalance := sample.get("imbalance")) is not None:
        limits = thresholds.IMBALANCE
        text = f"imbalance is {numbers.percent(imbalance)} (limit {numbers.percent(limits.bad)})"
        graded.append((limits.grade(imbalance), text))
    if (latency := sample.get("p95")) is not None:
        limits = thresholds.latency(cluster.trigger_ms)
        limit = numbers.milliseconds(limits.bad)
        text = f"p95 latency is {numbers.milliseconds(latency)} (limit {limit})"
        graded.append((limits.grade(latency), text))
    if cluster.last_sample_at is not None and not (_is_old(cluster, now) and is_idle(cluster, now)):
        seconds = (now - cluster.last_sample_at).total_seconds()
        limit = numbers.seconds(thresholds.AGE_S.bad)
        text = f"no data for {numbers.seconds(seconds)} (limit {limit})"
        graded.append((thresholds.AGE_S.grade(seconds), text))
    return graded


def _by_limits(measures: Sequence[tuple[str, str]]) -> ClusterStatus:
    exceeded = [sentence for grade, sentence in measures if grade == thresholds.BAD]
    near = [sentence for grade, sentence in measures if grade == thresholds.WARN]
    if exceeded:
        count = len(exceeded)
        title = f"{count} limit{'' if count == 1 else 's'} exceeded: {', '.join(exceeded)}"
        return ClusterStatus(
            thresholds.BAD, title, f"Near a limit: {', '.join(near)}." if near else ""
        )
    if near:
        return ClusterStatus(thresholds.WARN, f"Near a limit: {', '.join(near)}")
    if not measures:
        return ClusterStatus(thresholds.UNKNOWN, "No figures yet", FIRST_FIGURES)
    return ClusterStatus(
        thresholds.GOOD, "Imbalance and latency are within their limits, and data are fresh"
    )


def _sentence(text: str) -> str:
    """Return the text as a sentence, with a capital and a full stop."""
    if not text:
        return ""
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", ")", "!")) else ".")


def _lowered(text: str) -> str:
    return f"{text[:1].lower()}{text[1:]}"
