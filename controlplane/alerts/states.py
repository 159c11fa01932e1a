"""States of alerts, as pure functions: hold times and dead bands keep them from flapping."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from controlplane.alerts.measures import KINDS, AlertMeasure
from controlplane.models import Alert, Cluster

# The subjects of alerts about the Spark application, about sinks, and about topics.
APPLICATION: Final = "application"
SINKS: Final = "sinks"
TOPICS: Final = "topics"
# Subjects without a reading: their alert has what was observed last.
WITHOUT_READING: Final = frozenset({SINKS, TOPICS})
# Subjects that are no measures of a cluster: what the alert states, and the unit of its value.
_OTHERS: Final = {
    APPLICATION: ("Application failed", ""), SINKS: ("Sink behind or losing results", "s"),
    TOPICS: ("Stream behind its topic, or its topic has changed", "s"),
}  # fmt: skip
SUBJECTS: Final = (*(str(kind.measure) for kind in KINDS.values() if kind.alert), *_OTHERS)
# States of a Spark application that needs a person.
FAILED_STATES: Final = (
    Cluster.State.STUCK, Cluster.State.FAILED, Cluster.State.CRASH_LOOP,
    Cluster.State.NEEDS_DECISION,
)  # fmt: skip
_NOW: Final = timedelta(0)


class AlertStatus(StrEnum):
    """The state of an alert for people; a silenced one may also be acknowledged.

    RECOVERING: its value is within its limit again, not for long or far enough to clear it.
    """

    PENDING = "pending"
    FIRING = "firing"
    RECOVERING = "recovering"
    ACKNOWLEDGED = "acknowledged"
    SILENCED = "silenced"
    CLEARED = "cleared"


class AlertChange(StrEnum):
    """The transition of an alert by an evaluation."""

    NONE = "none"
    BEGIN = "begin"
    FIRE = "fire"
    CLEAR = "clear"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Observed:
    """The observation of a subject: value, limit, fullest node, and where the value lies.

    `exceeds`: beyond the limit; `is_near`: within the dead band before it, where an alert neither
    begins nor ends. `hold`: how long a value must stay beyond the limit, or within it.
    """

    subject: str
    value: float | None
    limit: float | None
    exceeds: bool
    is_near: bool
    hold: timedelta
    node: int | None = None
    detail: str = ""


def status_of(alert: Alert, now: datetime) -> AlertStatus:
    """Return the state of an alert at a moment."""
    if alert.state == Alert.State.CLEARED:
        return AlertStatus.CLEARED
    if alert.state == Alert.State.PENDING:
        return AlertStatus.PENDING
    if is_silenced(alert, now):
        return AlertStatus.SILENCED
    if alert.acknowledged_at is not None:
        return AlertStatus.ACKNOWLEDGED
    return AlertStatus.RECOVERING if is_within(alert) else AlertStatus.FIRING


def is_within(alert: Alert) -> bool:
    """Return True if the newest value of an alert is known and within its limit."""
    if alert.subject == APPLICATION or alert.value is None or alert.limit is None:
        return False
    if alert.subject in WITHOUT_READING:
        return alert.within_since is not None
    return not KINDS[AlertMeasure(alert.subject)].exceeds(alert.value, alert.limit)


def is_silenced(alert: Alert, now: datetime) -> bool:
    """Return True while the silence of an alert lasts."""
    return alert.silenced_until is not None and alert.silenced_until > now


def title_of(subject: str) -> str:
    """Return what an alert about a subject states."""
    return _OTHERS[subject][0] if subject in _OTHERS else KINDS[AlertMeasure(subject)].alert


def severity_of(subject: str) -> str:
    """Return "critical" for a failed application, "warning" for an exceeded limit."""
    return "critical" if subject == APPLICATION else "warning"


def unit_of(subject: str) -> str:
    """Return the unit of value and limit, "" for none."""
    return _OTHERS[subject][1] if subject in _OTHERS else KINDS[AlertMeasure(subject)].unit


def is_of_measure(subject: str) -> bool:
    """Return whether a subject is a measure of a cluster, which can be explained."""
    return subject not in _OTHERS


def path_of(slug: str, alert: Alert) -> str:
    """Return the path of an alert's page; `slug`: of its cluster."""
    return f"/clusters/{slug}/alerts/{alert.pk}/"


def change_of(alert: Alert | None, seen: Observed, now: datetime) -> AlertChange:
    """Return the transition that an observation causes; `alert`: the open one, None without one.

    It does not change the alert.
    """
    if alert is None:
        return (
            (AlertChange.BEGIN if seen.hold > _NOW else AlertChange.FIRE)
            if seen.exceeds
            else AlertChange.NONE
        )
    if alert.state == Alert.State.PENDING:
        if not seen.exceeds:
            return AlertChange.DISCARD
        return AlertChange.FIRE if now - alert.since >= seen.hold else AlertChange.NONE
    if seen.exceeds or seen.is_near:
        return AlertChange.NONE
    since = alert.within_since or now
    return AlertChange.CLEAR if now - since >= seen.hold else AlertChange.NONE
