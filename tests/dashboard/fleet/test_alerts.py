"""Alerts in the pages: history with filters, one alert, and what operators do about them."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.alerts import actions
from controlplane.alerts.states import AlertStatus, status_of
from controlplane.models import Alert, Execution
from dashboard.clusters.alert_rows import explain_address
from dashboard.frame.headline import NO_CAUSE
from tests.support.alerting import firing, fleet_cluster
from tests.support.cluster import actor
from tests.support.execution import execution_row

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("pages")]


@pytest.fixture
def alert(redis_url: str) -> Alert:
    """An alert that fires on the cluster sf."""
    return firing(fleet_cluster("sf", latency_p95=12_000.0))


def address(alert: Alert, verb: str = "") -> str:
    return f"/clusters/{alert.cluster.slug}/alerts/{alert.pk}/{verb}"


def state(alert: Alert) -> AlertStatus:
    alert.refresh_from_db()
    return status_of(alert, timezone.now())


def test_operators_acknowledge_silence_and_withdraw(operating: Client, alert: Alert) -> None:
    steps = [
        ("acknowledge/", {"note": "the producer restarts"}, AlertStatus.ACKNOWLEDGED),
        ("silence/", {"minutes": "60", "reason": "maintenance"}, AlertStatus.SILENCED),
        ("withdraw/", {}, AlertStatus.FIRING),
        ("silence/", {"minutes": "other", "other": "90", "reason": "more"}, AlertStatus.SILENCED),
    ]
    for verb, values, expected in steps:
        answer = operating.post(address(alert, verb), values)
        assert answer["Location"] == address(alert)
        assert state(alert) is expected, verb
    assert alert.silenced_until is not None
    assert alert.silenced_until - timezone.now() > timedelta(minutes=89)
    html = operating.get(address(alert)).content.decode()
    for text in ("acknowledged it", "silenced it", "withdrew", "the producer restarts", "more"):
        assert text in html


def test_the_page_draws_the_measure_against_its_limit(viewing: Client, alert: Alert) -> None:
    html = viewing.get(address(alert)).content.decode()
    assert 'class="explain-plot"' in html
    assert "limit 10.0 s</text>" in html
    Alert.objects.update(subject="application")
    assert 'class="explain-plot"' not in viewing.get(address(alert)).content.decode()


@pytest.mark.parametrize(
    ("values", "field"),
    [({"minutes": "60", "reason": " "}, "reason"), ({"minutes": "x", "reason": "r"}, "minutes"),
     ({"minutes": "other", "other": "99999", "reason": "r"}, "minutes")],
)  # fmt: skip
def test_a_refused_silence_returns_the_form_with_its_values(
    operating: Client, alert: Alert, values: dict[str, str], field: str
) -> None:
    answer = operating.post(address(alert, "silence/"), values, HTTP_HX_REQUEST="true")
    assert answer.status_code == 422
    assert field in answer.context["errors"]
    assert answer.context["values"]["reason"] == values["reason"]
    assert state(alert) is AlertStatus.FIRING


def test_the_history_has_the_end_of_the_excess_and_the_plans_during_it(
    viewing: Client, alert: Alert
) -> None:
    execution = execution_row(alert.cluster)
    path = f"/proposals/{execution.proposal_id}/"
    assert path not in viewing.get(address(alert)).content.decode(), "not finished"
    minute = timedelta(minutes=1)
    Execution.objects.update(finished_at=alert.since + 4 * minute)
    Alert.objects.update(within_since=alert.since + 5 * minute)
    page = viewing.get(address(alert))
    assert "held 5 min" in page.context["headline"].what
    history = page.content.decode()
    assert history.index(path) < history.index("Back within the limit")
    Execution.objects.update(finished_at=alert.since - minute)
    assert path not in viewing.get(address(alert)).content.decode(), "before the alert"


def test_an_alert_that_has_ended_lacks_no_cause(viewing: Client, alert: Alert) -> None:
    assert NO_CAUSE in viewing.get(address(alert)).content.decode()
    Alert.objects.update(state="cleared", cleared_at=timezone.now())
    assert NO_CAUSE not in viewing.get(address(alert)).content.decode()


def test_an_alert_that_has_been_cleared_is_not_changed(operating: Client, alert: Alert) -> None:
    Alert.objects.update(state="cleared", cleared_at=timezone.now())
    answer = operating.post(address(alert, "acknowledge/"), HTTP_HX_REQUEST="true")
    assert answer["HX-Redirect"] == address(alert)
    assert state(alert) is AlertStatus.CLEARED


def test_viewers_read_alerts_and_do_not_change_them(viewing: Client, alert: Alert) -> None:
    html = viewing.get(address(alert)).content.decode()
    assert "acknowledge/" not in html
    for verb in ("acknowledge/", "silence/", "withdraw/"):
        assert viewing.post(address(alert, verb), {"reason": "r"}).status_code == 403
    assert viewing.get(address(alert, "silence/form/")).status_code == 403
    assert state(alert) is AlertStatus.FIRING


def test_the_history_has_filters_in_its_address(viewing: Client, alert: Alert) -> None:
    other = fleet_cluster("web")
    now = timezone.now()
    cleared = firing(
        other, "imbalance", state="cleared", since=now - timedelta(hours=5),
        cleared_at=now - timedelta(hours=4), value=0.1, worst=0.4, limit=0.25,
    )  # fmt: skip
    firing(other, "node_load", state="pending", fired_at=None)

    def shown(query: str) -> list[int]:
        return [row.alert.pk for row in viewing.get(f"/alerts/{query}").context["rows"]]

    assert shown("") == [alert.pk, cleared.pk]
    assert shown("?state=cleared") == shown("?cluster=web") == shown("?subject=imbalance")
    assert shown("?state=cleared") == [cleared.pk]
    assert shown("?state=silenced") == []
    assert viewing.get("/alerts/?state=loud").status_code == 422
    context = viewing.get("/alerts/?state=cleared").context
    assert context["states"] == [
        ("firing", 1), ("recovering", 0), ("acknowledged", 0), ("silenced", 0), ("cleared", 1)
    ]  # fmt: skip
    assert sum(count for *_, count in context["subjects"]) == 2


def test_an_alert_is_explained_at_its_time(alert: Alert) -> None:
    moment = round(alert.evaluated_at.timestamp() * 1000)
    assert explain_address(alert) == (f"/clusters/sf/?explain=measure%3Alatency_p95%40{moment}")
    node = firing(alert.cluster, "node_load", node=3, value=1.2, worst=1.3, limit=1.0)
    assert "explain=node%3A3%40" in explain_address(node)
    now = timezone.now()
    node.cleared_at = now
    assert "from=" in explain_address(node)
    assert f"node%3A3%40{round(node.fired_at.timestamp() * 1000)}" in explain_address(node)  # type: ignore[union-attr]
    failed = firing(alert.cluster, "application", value=None, worst=None, limit=None)
    assert explain_address(failed) == "/clusters/sf/"


def test_the_address_of_an_explanation_opens(viewing: Client, alert: Alert) -> None:
    answer = viewing.get(explain_address(alert))
    assert answer.status_code == 200


def test_events_of_alerts_name_their_page(alert: Alert, monkeypatch: pytest.MonkeyPatch) -> None:
    events = []
    monkeypatch.setattr(actions, "announce", lambda _, event: events.append(event))
    actions.acknowledge(actor("operator"), alert)
    assert [event["url"] for event in events] == [address(alert)]
