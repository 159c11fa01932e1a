"""The tour at the top of the pages of a demo cluster."""

import pytest
from django.test import Client

from controlplane.access.roles import Actor
from controlplane.models import Cluster, TourProgress
from tests.dashboard.conftest import browser_of

pytestmark = [pytest.mark.django_db, pytest.mark.nightly("pages")]
HTMX = {"HX-Request": "true"}


def test_it_is_offered_started_and_dismissed(sf: Cluster, operator: Actor, viewer: Actor) -> None:
    browser = browser_of(operator)
    assert 'id="tour"' not in browser.get("/clusters/sf/").content.decode()
    Cluster.objects.filter(pk=sf.pk).update(demo="sf")
    assert 'id="tour"' in browser.get("/clusters/sf/").content.decode()
    assert "Start tour" in _shown(browser)
    assert _shown(browser, "/clusters/sf/ledger/").strip() == ""
    browser.post("/clusters/sf/tour/start/")
    assert "step 1 of 7" in _shown(browser)
    assert 'aria-current="step">Disturb' in _shown(browser)
    browser.get("/clusters/sf/explain/?subject=node:0")
    assert TourProgress.objects.get().explained_at is not None
    assert "step 4 of 7" in _shown(browser, "/clusters/sf/ledger/")
    browser.post("/clusters/sf/tour/dismiss/")
    assert _shown(browser).strip() == ""
    assert _shown(browser_of(viewer)) == ""


def _shown(browser: Client, page: str = "/clusters/sf/") -> str:
    """Return what a page of the cluster shows of the tour."""
    headers = {**HTMX, "HX-Current-URL": f"http://testserver{page}"}
    return browser.get("/clusters/sf/tour/", headers=headers).content.decode()
