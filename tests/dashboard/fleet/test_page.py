"""The page of the fleet in each of its states, and the navigation's counters."""

import re
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.models import Alert, AuditEntry, Cluster, Grant, Proposal, SeriesPeriod, Visit
from tests.controlplane.api.callers import user_of
from tests.dashboard.conftest import browser_of
from tests.support.alerting import add_points, firing, fleet_cluster

pytestmark = pytest.mark.django_db
ADD = "/demo/web/"


def text_of(client: Client, path: str = "/", **headers: str) -> str:
    answer = client.get(path, **headers)  # type: ignore[arg-type]
    assert answer.status_code == 200
    return answer.content.decode()


def title(html: str) -> str:
    match = re.search(r'id="fleet-title">([^<]*)<', html)
    assert match is not None
    return match[1]


def order(html: str) -> list[str]:
    return re.findall(r'<tr id="row-(\w+)"', html)


def test_the_worst_cluster_comes_first_with_its_reason_and_its_plan(operating: Client) -> None:
    now = timezone.now()
    fleet_cluster("fine")
    bad = fleet_cluster("bad", latency_p95=12_000.0)
    fleet_cluster("near", node_load=0.95)
    alert = firing(bad)
    proposal = Proposal.objects.create(
        cluster=bad, planner="placement", algorithm="mms", state="ready", requested_by="a",
        requested_at=now - timedelta(hours=2),
    )  # fmt: skip
    html = text_of(operating)
    assert title(html) == "1 of 3 clusters needs you"
    assert order(html) == ["bad", "near", "fine"]
    assert order(text_of(operating, "/?order=name")) == ["bad", "fine", "near"]
    start = html.index("card attention")
    card = html[start : html.index("</section>", start)]
    assert "BAD" in card
    assert "1 limit exceeded" in card
    assert f"{alert.since:%H:%M}" in card
    assert f'href="/clusters/bad/proposals/{proposal.pk}/"' in card
    assert "/clusters/bad/?explain=measure" in card
    assert html.count(f"/clusters/bad/alerts/{alert.pk}/acknowledge/") == 2, "as action and hx-post"
    assert f"/clusters/bad/alerts/{alert.pk}/acknowledge/" in card
    assert 'id="alerts"' not in html, "the card has the only alert"
    assert "explain-plot" in card
    assert "near a limit" in html
    assert "Nothing to do" in html
    assert ": 1 of 3 need you<" in html
    assert "<span data-firing>1</span>" in html


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "All 2 clusters keep their limits"),
        ({"desired": "stopped", "state": "stopped"}, "The running cluster keeps its limits"),
        ({"state": "crash loop"}, "1 of 2 clusters needs you"),
    ],
)
def test_the_title_counts_clusters(
    operating: Client, changed: dict[str, str], expected: str
) -> None:
    fleet_cluster("fine")
    fleet_cluster("other")
    Cluster.objects.filter(slug="other").update(**changed)
    html = text_of(operating)
    assert title(html) == expected
    stopped = changed.get("desired") == "stopped"
    assert ('action="/clusters/other/start/"' in html) == stopped


def test_without_data_no_limit_is_claimed_to_be_kept(operating: Client) -> None:
    Cluster.objects.create(slug="new", name="New", desired="running", state="starting")
    html = text_of(operating)
    assert title(html) == "No cluster exceeds a limit"
    assert "1 is starting" in html


def test_without_clusters_the_page_leads_to_the_first(administering: Client) -> None:
    html = text_of(administering)
    assert title(html) == "No cluster yet"
    for path in ("/import/", ADD, "/create/"):
        assert path in html
    assert 'id="attach-job"' in html


def test_chip_and_sentence_count_the_same_limits(operating: Client) -> None:
    """An alert that fires for a value within its limit again is not an exceeded limit."""
    cluster = fleet_cluster("bad", imbalance=0.5)
    exceeded, recovered = firing(cluster, "imbalance", value=0.5, limit=0.2), firing(cluster)
    html = text_of(operating)
    start = html.index("card attention")
    card = html[start : html.index("</section>", start)]
    assert "1 limit exceeded" in card
    assert "One limit exceeded" in card
    assert "2 limits" not in html
    SeriesPeriod.objects.filter(cluster=cluster).delete()
    exceeded.delete()
    add_points(cluster, timezone.now(), imbalance=0.05)
    html = text_of(operating)
    assert "1 alert open" in html
    assert not re.search(r"(\d|One) limits? exceeded", html)
    Alert.objects.filter(pk=recovered.pk).update(acknowledged_at=timezone.now())
    assert title(text_of(operating)) == "No cluster needs you"


def test_a_handled_alert_no_longer_counts(operating: Client, operator: Actor) -> None:
    cluster = fleet_cluster("bad", latency_p95=12_000.0)
    alert = firing(cluster)
    answer = operating.post(
        f"/clusters/bad/alerts/{alert.pk}/acknowledge/", {"note": ""}, HTTP_HX_REQUEST="true"
    )
    assert (answer.status_code, "weir:changed" in answer["HX-Trigger"]) == (200, True)
    html = text_of(operating)
    assert title(html) == "No cluster needs you"
    assert f"by {operator.name}" in html
    assert "Acknowledged" in html
    assert "<span data-firing>0</span>" in html


def test_live_parts_have_the_counters_of_the_navigation(operating: Client) -> None:
    firing(fleet_cluster("bad", imbalance=0.5), "imbalance", value=0.5, limit=0.2)
    html = text_of(operating, HTTP_HX_REQUEST="true")
    assert "<html" not in html
    assert 'id="nav-needing" hx-swap-oob="true"' in html
    assert ": 1 of 1 need you<" in html
    assert 'data-dot="nav-dot-bad"><span class="dot bad">' in html
    status = text_of(operating, "/navigation/", HTTP_HX_REQUEST="true")
    assert 'id="bell"' in status
    assert 'data-dot="nav-dot-bad"' in status
    assert "nav-count-" not in status
    of_cluster = text_of(operating, "/navigation/?cluster=bad", HTTP_HX_REQUEST="true")
    assert 'data-dot="nav-count-queries">0<' in of_cluster


def test_the_briefing_is_about_the_time_since_the_last_visit(
    operating: Client, operator: Actor
) -> None:
    cluster, now = fleet_cluster("fine"), timezone.now()
    seen = now - timedelta(hours=3)
    Visit.objects.create(user=user_of(operator), last_end=None, seen_at=seen)
    firing(cluster, since=now - timedelta(hours=2), fired_at=now - timedelta(hours=2),
           state=Alert.State.CLEARED, cleared_at=now - timedelta(hours=1))  # fmt: skip
    html = text_of(operating)
    # Its date stands before the time unless it was today.
    assert re.search(rf"Since your last visit, ({seen:%Y-%m-%d} )?{seen:%H:%M}", html)
    assert "<b>1</b> alert raised, <b>1</b> cleared" in html


def test_a_role_on_one_cluster_shows_that_cluster_alone(viewer: Actor) -> None:
    shown, hidden = fleet_cluster("shown"), fleet_cluster("hidden", imbalance=0.9)
    firing(hidden)
    user_of(viewer).groups.clear()
    Grant.objects.create(
        user=user_of(viewer), cluster=shown, role="viewer", granted_at=timezone.now()
    )
    html = text_of(browser_of(viewer))
    assert title(html) == "The cluster keeps its limits"
    assert "hidden" not in order(html)
    assert "/clusters/hidden/" not in html
    assert "cluster-actions" not in html
    assert 'hx-get="/clusters/shown/actions/"' not in html


def test_the_number_of_statements_does_not_grow_with_the_fleet(operating: Client) -> None:
    counts = []
    for group in ("a", "b"):
        for number in range(4):
            firing(fleet_cluster(f"{group}{number}", latency_p95=12_000.0), node=None)
        text_of(operating)
        with CaptureQueriesContext(connection) as queries:
            text_of(operating)
        counts.append(len(queries))
    assert counts[1] <= counts[0]


def test_a_cluster_is_stopped_and_started_from_the_fleet(operating: Client) -> None:
    fleet_cluster("fine")
    dialog = text_of(operating, "/clusters/fine/actions/", HTTP_HX_REQUEST="true")
    assert 'action="/clusters/fine/stop/"' in dialog
    for verb, wanted in (("stop", "stopped"), ("start", "running")):
        answer = operating.post(f"/clusters/fine/{verb}/", {"reason": "test", "back": "fleet"})
        assert (answer.status_code, answer["Location"]) == (302, "/")
        assert Cluster.objects.get().desired == wanted


def test_an_operator_adds_a_demonstration_once(operator: Actor) -> None:
    browser = browser_of(operator)
    assert ADD in text_of(browser)
    for _ in range(2):
        assert browser.post(ADD).status_code == 302
    cluster = Cluster.objects.get(slug="web")
    assert (cluster.desired, cluster.nodes.count()) == (Cluster.Desired.RUNNING, 3)
    assert AuditEntry.objects.filter(action="cluster.demo").exists()
    assert ADD not in text_of(browser)


def test_a_viewer_may_not_add_a_demonstration(viewer: Actor) -> None:
    browser = browser_of(viewer)
    assert ADD not in text_of(browser)
    assert browser.post(ADD).status_code == 403
    assert not Cluster.objects.exists()


def test_without_the_demo_none_is_offered(operator: Actor, settings: LazySettings) -> None:
    settings.DEMOS = ()
    browser = browser_of(operator)
    assert ADD not in text_of(browser)
    assert browser.post(ADD).status_code == 404
    assert browser.post("/demo/moon/").status_code == 404
