"""The demonstrations on the page of the fleet."""

import pytest
from django.conf import LazySettings

from controlplane.access.roles import Actor
from controlplane.models import AuditEntry, Cluster
from tests.dashboard.conftest import browser_of

pytestmark = pytest.mark.django_db
ADD = "/demo/web/"


def test_an_operator_adds_a_demonstration_once(sf: Cluster, operator: Actor) -> None:
    browser = browser_of(operator)
    assert ADD in browser.get("/").content.decode()
    for _ in range(2):
        assert browser.post(ADD).status_code == 302
    cluster = Cluster.objects.get(slug="web")
    assert (cluster.desired, cluster.nodes.count()) == (Cluster.Desired.RUNNING, 3)
    assert AuditEntry.objects.filter(action="cluster.demo").exists()
    assert ADD not in browser.get("/").content.decode()


def test_a_viewer_may_not(sf: Cluster, viewer: Actor) -> None:
    browser = browser_of(viewer)
    assert ADD not in browser.get("/").content.decode()
    assert browser.post(ADD).status_code == 403
    assert not Cluster.objects.filter(slug="web").exists()


def test_an_unknown_demonstration_is_not_found(operator: Actor) -> None:
    assert browser_of(operator).post("/demo/moon/").status_code == 404


def test_without_the_demo_none_is_offered(
    sf: Cluster, operator: Actor, settings: LazySettings
) -> None:
    settings.DEMOS = ()
    browser = browser_of(operator)
    assert ADD not in browser.get("/").content.decode()
    assert browser.post(ADD).status_code == 404
