"""Scenarios on the page of a demo cluster: start, end, and the flag on the time strip."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from controlplane.access.roles import Actor
from controlplane.clusters.scenarios import DEFAULT_MINUTES, KINDS
from controlplane.models import Cluster, Scenario
from dashboard.clusters.strip import strip_of
from dashboard.time_range import TimeRange

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("pages")]


@pytest.fixture
def demo(sf: Cluster) -> Cluster:
    """A running demo cluster."""
    Cluster.objects.filter(pk=sf.pk).update(demo="sf", desired="running")
    sf.refresh_from_db()
    return sf


@pytest.fixture
def client(operator: Actor) -> Client:
    """An operator's browser."""
    result = Client()
    result.force_login(operator.user)  # type: ignore[arg-type]
    return result


def test_only_demo_clusters_offer_scenarios(client: Client, sf: Cluster) -> None:
    assert 'id="scenario"' not in client.get("/clusters/sf/").content.decode()
    Cluster.objects.filter(pk=sf.pk).update(demo="sf")
    page = client.get("/clusters/sf/").content.decode()
    assert 'id="scenario"' in page
    assert page.count('type="radio" name="kind"') == 9
    planners = {kind.planner for kind in KINDS.values() if kind.planner}
    assert page.count("Start scenario ") == len(planners) == 5


def test_one_click_starts_a_scenario_of_a_planner(client: Client, demo: Cluster) -> None:
    """The card of the scenario names what the operator will see and do."""
    assert client.post("/clusters/sf/scenarios/start/", {"kind": "hot_key"}).status_code == 302
    row = Scenario.objects.get()
    assert row.ends_at - row.started_at == timedelta(minutes=DEFAULT_MINUTES)
    cards = client.get("/clusters/sf/cards/").content.decode()
    assert "Alert: Imbalance above limit or Node above capacity limit" in cards
    assert KINDS["hot_key"].plan in cards


def test_a_scenario_starts_is_shown_and_ends(client: Client, demo: Cluster) -> None:
    values = {"kind": "slow_node", "node": "1", "minutes": "5"}
    assert client.post("/clusters/sf/scenarios/start/", values).status_code == 302
    row = Scenario.objects.get()
    assert (row.kind, row.node, row.ends_at - row.started_at) == (
        "slow_node", 1, timedelta(minutes=5),
    )  # fmt: skip
    cards = client.get("/clusters/sf/cards/").content.decode()
    assert "End scenario" in cards
    now = timezone.now()
    strip = strip_of(demo, TimeRange(now - timedelta(minutes=30), now, "30m"), now)
    assert [flag.label for flag in strip.flags] == ["⚑ slow node"]
    client.post(f"/clusters/sf/scenarios/{row.pk}/end/")
    row.refresh_from_db()
    assert row.ended_by == "a-operator"
    assert "End scenario" not in client.get("/clusters/sf/cards/").content.decode()


def test_errors_are_at_their_fields_with_the_submitted_values(
    client: Client, demo: Cluster
) -> None:
    values = {"kind": "node_lost", "node": "2", "minutes": "90"}
    answer = client.post("/clusters/sf/scenarios/start/", values, headers={"HX-Request": "true"})
    assert answer.status_code == 422
    form = answer.content.decode()
    assert "from 1 to 60" in form
    assert 'value="node_lost" checked' in form
    assert '<option value="2" selected>' in form
    assert not Scenario.objects.exists()
