"""Evaluation of alerts in every cycle of the watch loops: transitions, their events and records."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from django.db import transaction

from controlplane.access import audit
from controlplane.access.roles import Automatic
from controlplane.alerts.measures import KINDS
from controlplane.alerts.readings import ClusterReadings, readings_of
from controlplane.alerts.states import (
    APPLICATION,
    FAILED_STATES,
    SINKS,
    TOPICS,
    AlertChange,
    Observed,
    change_of,
    is_silenced,
    path_of,
    severity_of,
    title_of,
    unit_of,
)
from controlplane.errors import Away
from controlplane.events.publish import announce, event
from controlplane.models import Alert, Cluster
from controlplane.numbers import value_text
from controlplane.planners.placement.reachable import request_if_due
from controlplane.policies.grades import Grade
from controlplane.sinks.status import LIMIT_S, WorstSink, worst_sinks
from controlplane.telemetry.sources import WorstSource, worst_sources

logger = logging.getLogger(__name__)

WEIR: Final = Automatic("alerts")


def evaluate_all(now: datetime) -> None:
    """Evaluate the alerts of every cluster; an error in one does not affect the others."""
    clusters = list(Cluster.objects.select_related("health").order_by("pk"))
    for cluster in clusters:
        _guarded("Refreshing the reachable limits", cluster, partial(request_if_due, cluster, now))
    readings = readings_of(clusters, now=now)
    open_alerts = _open_alerts()
    sinks, topics = worst_sinks(now), _worst_sources(clusters)
    for cluster in clusters:
        reading = readings[cluster.pk]
        observed = [*observe(reading), _sinks(reading, sinks), *_topics(reading, topics)]
        if open_alerts.get(cluster.pk) or any(seen.exceeds for seen in observed):
            work = partial(_evaluate, cluster, observed, now)
            _guarded("Evaluating alerts", cluster, work)


def _guarded(what: str, cluster: Cluster, work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        # The next cycle retries.
        logger.exception("%s of %s failed", what, cluster.slug)


def _open_alerts() -> dict[int, int]:
    rows = Alert.objects.filter(cleared_at=None).values_list("cluster", "pk")
    return dict(rows.order_by())


def observe(readings: ClusterReadings) -> list[Observed]:
    """Return the observations of a cluster's subjects, none beyond a limit if it is stopped."""
    cluster, policy = readings.cluster, readings.policy
    runs = cluster.desired == Cluster.Desired.RUNNING
    hold = timedelta(seconds=policy.alert_hold_s)
    observed = [
        Observed(
            subject=str(reading.measure),
            value=reading.value,
            limit=reading.limit,
            exceeds=runs and reading.grade == Grade.BAD,
            is_near=runs and reading.grade == Grade.WARN,
            hold=hold if runs else timedelta(0),
            node=reading.node,
        )
        for reading in readings.readings
        if KINDS[reading.measure].alert
    ]
    failed = runs and cluster.state in FAILED_STATES
    detail = (cluster.state_detail or cluster.state) if failed else ""
    # The agent has decided on the state: a hold time would only delay the alert.
    application = Observed(
        APPLICATION, None, None, exceeds=failed, is_near=False, hold=timedelta(0),
        detail=detail[:300],
    )  # fmt: skip
    return [*observed, application]


def _sinks(readings: ClusterReadings, worst: Mapping[int, WorstSink]) -> Observed:
    """Return the observation of the sinks of a cluster, whether its application runs or not."""
    sink = worst.get(readings.cluster.pk)
    hold = timedelta(seconds=readings.policy.alert_hold_s)
    if sink is None:
        return Observed(SINKS, 0.0, LIMIT_S, exceeds=False, is_near=False, hold=hold)
    return Observed(
        SINKS, sink.lag_s, sink.limit_s, exceeds=True, is_near=False, hold=hold,
        detail=sink.text[:300],
    )  # fmt: skip


def _worst_sources(clusters: Sequence[Cluster]) -> Mapping[int, WorstSource] | None:
    """Return the worst source of each cluster, None while Redis does not respond."""
    try:
        return worst_sources({cluster.pk: cluster.slug for cluster in clusters})
    except Away:
        return None


def _topics(readings: ClusterReadings, worst: Mapping[int, WorstSource] | None) -> list[Observed]:
    """Return the observation of the topics of a cluster, which only a running pipeline reads."""
    if worst is None:
        return []
    topic, limit = worst.get(readings.cluster.pk), float(readings.policy.watch_topic_s)
    hold = timedelta(seconds=readings.policy.alert_hold_s)
    if topic is None or readings.cluster.desired != Cluster.Desired.RUNNING:
        return [Observed(TOPICS, 0.0, limit, exceeds=False, is_near=False, hold=hold)]
    exceeds = topic.is_troubled or topic.lag_s > limit
    return [Observed(
        TOPICS, topic.lag_s, limit, exceeds=exceeds, is_near=False, hold=hold,
        detail=topic.text[:300] if exceeds else "",
    )]  # fmt: skip


@transaction.atomic
def _evaluate(cluster: Cluster, observed: list[Observed], now: datetime) -> None:
    # Concurrent cycles would create an alert twice.
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    rows: Mapping[str, Alert] = {
        alert.subject: alert for alert in Alert.objects.filter(cluster=cluster, cleared_at=None)
    }
    for seen in observed:
        _apply(cluster, rows.get(seen.subject), seen, now)


def _apply(cluster: Cluster, alert: Alert | None, seen: Observed, now: datetime) -> None:
    change = change_of(alert, seen, now)
    if alert is None:
        if change is AlertChange.NONE:
            return
        alert = _begin(cluster, seen, now)
        if change is AlertChange.FIRE:
            _fire(cluster, alert, now)
        return
    if change is AlertChange.DISCARD:
        alert.delete()
        return
    _update(alert, seen, now)
    if change is AlertChange.FIRE:
        _fire(cluster, alert, now)
    elif change is AlertChange.CLEAR:
        _clear(cluster, alert, now)


def _begin(cluster: Cluster, seen: Observed, now: datetime) -> Alert:
    """Create a pending alert; a silence of the last alert about the subject continues."""
    last = Alert.objects.filter(cluster=cluster, subject=seen.subject).first()
    silence: dict[str, Any] = {}
    if last is not None and is_silenced(last, now):
        names = ("silenced_by", "silenced_until", "silence_reason")
        silence = {name: getattr(last, name) for name in names}
    return Alert.objects.create(
        cluster=cluster, subject=seen.subject, value=seen.value, worst=seen.value,
        limit=seen.limit, worst_limit=seen.limit, node=seen.node, detail=seen.detail, since=now,
        evaluated_at=now,
        **silence,
    )  # fmt: skip


def _update(alert: Alert, seen: Observed, now: datetime) -> None:
    """Store the newest observation; columns that people change are not written."""
    alert.evaluated_at = now
    alert.limit, alert.node = seen.limit, seen.node if seen.exceeds else alert.node
    if seen.value is not None:
        alert.value = seen.value
        worst = seen.value if alert.worst is None else alert.worst
        is_worse = seen.value <= worst if seen.subject in _LOWER else seen.value >= worst
        if is_worse:
            alert.worst, alert.worst_limit = seen.value, seen.limit
    alert.detail = seen.detail or alert.detail
    is_within = not seen.exceeds and not seen.is_near
    alert.within_since = (alert.within_since or now) if is_within else None
    alert.save(
        update_fields=[
            "evaluated_at", "limit", "node", "value", "worst", "worst_limit", "detail",
            "within_since",
        ]
    )  # fmt: skip


_LOWER: Final = frozenset(str(kind.measure) for kind in KINDS.values() if kind.is_lower)


def _fire(cluster: Cluster, alert: Alert, now: datetime) -> None:
    alert.state, alert.fired_at = Alert.State.FIRING, now
    alert.save(update_fields=["state", "fired_at"])
    _publish(cluster, alert, "firing", now)


def _clear(cluster: Cluster, alert: Alert, now: datetime) -> None:
    alert.state, alert.cleared_at = Alert.State.CLEARED, now
    alert.save(update_fields=["state", "cleared_at"])
    _publish(cluster, alert, "cleared", now)


def _publish(cluster: Cluster, alert: Alert, state: str, now: datetime) -> None:
    """Record a transition, and publish it; webhooks do not receive it while it is silenced."""
    action = "alert.fire" if state == "firing" else "alert.clear"
    audit.record(
        WEIR, action, f"{cluster.slug}/{alert.subject}", cluster=cluster,
        after={"alert": alert.pk, "value": alert.value, "limit": alert.limit, "node": alert.node},
    )  # fmt: skip
    announce(
        cluster.pk,
        event(
            "alert", message_of(cluster, alert), pk=alert.pk, state=state,
            url=path_of(cluster.slug, alert), severity=severity_of(alert.subject),
        ),
        passing=is_silenced(alert, now),
    )  # fmt: skip


def message_of(cluster: Cluster, alert: Alert) -> str:
    """Return the message of an alert's transition."""
    state = "cleared: " if alert.state == Alert.State.CLEARED else ""
    text = f"{cluster.name}, {state}{title_of(alert.subject)}"
    if alert.value is None or alert.limit is None:
        return f"{text}: {alert.detail}" if alert.detail else text
    unit = unit_of(alert.subject)
    return f"{text}: {value_text(alert.value, unit)}, limit {value_text(alert.limit, unit)}"
