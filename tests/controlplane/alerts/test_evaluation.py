"""Alerts: hold times, hysteresis, events, webhooks and records of their transitions."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.alerts import actions
from controlplane.alerts.evaluation import evaluate_all
from controlplane.alerts.listing import AlertFilters, alerts_listing, open_alerts, prune
from controlplane.alerts.states import AlertStatus, status_of
from controlplane.errors import Conflict, Invalid
from controlplane.models import Alert, AuditEntry, Cluster, Delivery, Node, Webhook
from tests.support.cluster import actor
from tests.support.watching import measured

pytestmark = pytest.mark.django_db
LATENCY = "latency_p95"
START = datetime(2026, 3, 2, 10, 0, tzinfo=timezone.get_current_timezone())


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster.objects.create(slug="sf", name="SF", desired="running", state="running")
    Node.objects.create(cluster=cluster, index=0, name="node 0", capacity=1000)
    Webhook.objects.create(
        name="pager", url="https://example.org", kinds=["alerts"], created_at=timezone.now()
    )
    return cluster


def _evaluate(cluster: Cluster, second: int, p95: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate with samples of one latency only, at a second after the start."""
    now = START + timedelta(seconds=second)
    monkeypatch.setattr(timezone, "now", lambda: now)
    cluster.series_periods.all().delete()
    measured(cluster, now, p95=p95)
    evaluate_all(now)


def _latency() -> Alert | None:
    return Alert.objects.filter(subject=LATENCY).first()


def _deliveries() -> list[str]:
    return list(Delivery.objects.order_by("pk").values_list("kind", flat=True))


def test_an_alert_fires_after_the_hold_time_and_clears_beyond_the_dead_band(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    _evaluate(cluster, 0, 12_000, monkeypatch)
    row = _latency()
    assert row is not None
    assert (row.state, row.since, row.limit) == ("pending", START, 10_000)
    assert (open_alerts(None), _deliveries()) == ([], [])
    _evaluate(cluster, 30, 13_000, monkeypatch)
    _evaluate(cluster, 60, 12_500, monkeypatch)
    assert [(alert.subject, alert.worst) for alert in open_alerts(None)] == [(LATENCY, 13_000)]
    # Around the limit, within the dead band: neither another alert nor the end of this one.
    for second, p95 in ((100, 9_500), (170, 9_500), (200, 10_500), (210, 8_000), (240, 9_500)):
        _evaluate(cluster, second, p95, monkeypatch)
    assert [alert.state for alert in Alert.objects.all()] == ["firing"]
    _evaluate(cluster, 250, 8_000, monkeypatch)
    _evaluate(cluster, 310, 8_000, monkeypatch)
    row = _latency()
    assert row is not None
    assert (row.state, row.cleared_at) == ("cleared", START + timedelta(seconds=310))
    assert _deliveries() == ["alert.firing", "alert.cleared"]
    actions_logged = AuditEntry.objects.order_by("pk").values_list("actor", "action", "object")
    assert list(actions_logged) == [
        ("alerts", "alert.fire", "sf/latency_p95"), ("alerts", "alert.clear", "sf/latency_p95")
    ]  # fmt: skip


def test_a_short_excess_leaves_no_row(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    _evaluate(cluster, 0, 12_000, monkeypatch)
    _evaluate(cluster, 30, 9_500, monkeypatch)
    assert _latency() is None


def test_a_silence_outlasts_the_alert_and_webhooks_receive_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for second in (0, 60):
        _evaluate(cluster, second, 12_000, monkeypatch)
    row = _latency()
    assert row is not None
    actions.silence(actor(), row, 60, "planned load test")
    before = _deliveries()
    for second, p95 in ((70, 100), (130, 100), (140, 12_000), (200, 12_000)):
        _evaluate(cluster, second, p95, monkeypatch)
    second_alert = _latency()
    assert second_alert is not None
    assert second_alert.pk != row.pk
    assert status_of(second_alert, timezone.now()) is AlertStatus.SILENCED
    assert _deliveries() == before == ["alert.firing", "alert.silenced"]
    assert status_of(second_alert, timezone.now() + timedelta(hours=2)) is AlertStatus.FIRING


def test_a_failed_application_alerts_at_once_and_a_stopped_cluster_has_no_alert(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    Cluster.objects.update(state="crash loop", state_detail="The driver exits with code 1")
    _evaluate(cluster, 0, 100, monkeypatch)
    (alert,) = open_alerts(None)
    assert (alert.subject, alert.detail) == ("application", "The driver exits with code 1")
    Cluster.objects.update(desired="stopped")
    _evaluate(cluster, 10, 100, monkeypatch)
    assert open_alerts(None) == []
    assert prune(timezone.now() + timedelta(days=91)) == 1


def _firing(cluster: Cluster) -> Alert:
    now = timezone.now()
    return Alert.objects.create(
        cluster=cluster, subject=LATENCY, state="firing", value=12_000, limit=10_000, since=now,
        fired_at=now, evaluated_at=now,
    )  # fmt: skip


def _states(by: Actor, state: str) -> list[int]:
    listing = alerts_listing(by, AlertFilters(state=state))
    return [row.pk for row in listing.page.rows]


def test_operators_acknowledge_silence_and_withdraw(cluster: Cluster) -> None:
    alert, by = _firing(cluster), actor()
    assert _states(by, "firing") == [alert.pk]
    actions.acknowledge(by, alert, "looking into it")
    assert _states(by, "acknowledged") == [alert.pk]
    actions.silence(by, alert, 30, "known")
    assert (_states(by, "silenced"), _states(by, "acknowledged")) == ([alert.pk], [])
    actions.withdraw(by, alert)
    assert (_states(by, "firing"), _states(by, "recovering")) == ([alert.pk], [])
    Alert.objects.update(value=9_500)
    assert (_states(by, "firing"), _states(by, "recovering")) == ([], [alert.pk])
    assert status_of(Alert.objects.get(), timezone.now()) is AlertStatus.RECOVERING
    logged = AuditEntry.objects.order_by("pk").values_list("action", "reason")
    assert list(logged) == [
        ("alert.acknowledge", "looking into it"), ("alert.silence", "known"),
        ("alert.withdraw", ""),
    ]  # fmt: skip
    assert _deliveries() == ["alert.acknowledged", "alert.silenced", "alert.firing"]


def test_refusals_of_actions_on_alerts(cluster: Cluster) -> None:
    alert, by = _firing(cluster), actor()
    with pytest.raises(Invalid) as refusal:
        actions.silence(by, alert, 0, "known")
    assert set(refusal.value.fields) == {"minutes"}
    with pytest.raises(Invalid) as refusal:
        actions.silence(by, alert, 60, " ")
    assert set(refusal.value.fields) == {"reason"}
    with pytest.raises(Conflict) as conflict:
        actions.withdraw(by, alert)
    assert conflict.value.code == "nothing_to_withdraw"
    Alert.objects.update(state="cleared", cleared_at=timezone.now())
    with pytest.raises(Conflict) as conflict:
        actions.acknowledge(by, alert)
    assert conflict.value.code == "alert_ended"
