"""The page of load shedding in a browser: charts, arming in a dialog, a narrow window."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from controlplane.models import ArmedLadder, Cluster
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.shedding import busy_cluster

pytestmark = pytest.mark.browser


@pytest.fixture
def busy(page: Page, web: str) -> None:
    """A cluster with measured rates and costs, and its operator, who is logged in."""
    apart(_busy)
    log_in(page, web, "a-operator")


def _busy() -> Cluster:
    by = made.actor("operator")
    return busy_cluster(by, made.small_cluster(by), timezone.now())


def test_a_ladder_is_armed_and_drilled(page: Page, busy: None) -> None:
    page.goto("/clusters/sf/shedding/")
    page.locator("body[data-ready]").wait_for(state="attached")
    expect(page.locator("#shedding-finding")).to_contain_text("Not armed")
    expect(page.locator('[data-figure="feasible"] .heatmaplayer')).to_have_count(1)
    page.get_by_role("button", name="Arm ladder…").click()
    dialog = page.locator("#arm")
    dialog.get_by_role("button", name="Arm ladder").click()
    expect(dialog).to_contain_text("Give a reason")
    dialog.get_by_label("Reason").fill("the sale begins")
    dialog.get_by_role("button", name="Arm ladder").click()
    expect(page.locator(".message")).to_contain_text("rungs is armed from the next batch on")
    assert apart(lambda: ArmedLadder.objects.get().reason) == "the sale begins"
    page.locator("body[data-ready]").wait_for(state="attached")
    start = f"{timezone.now() - timedelta(minutes=20):%Y-%m-%dT%H:%M}"
    page.get_by_label("From").fill(start)
    page.get_by_role("button", name="Run drill").click()
    expect(page.locator("#drill")).to_contain_text("Time above capacity")
    expect(page.locator('[data-figure="drill"] .scatterlayer')).to_have_count(1)


def test_a_narrow_window_does_not_scroll_sideways(page: Page, busy: None) -> None:
    page.set_viewport_size({"width": 400, "height": 900})
    page.goto("/clusters/sf/shedding/")
    page.locator("body[data-ready]").wait_for(state="attached")
    expect(page.locator("#shedding-rungs")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("button", name="Edit weights and floors…").click()
    weights = page.locator("#weights")
    weights.get_by_label("Weight of low").fill("3")
    weights.get_by_label("Floor of low in percent").fill("10")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    weights.get_by_role("button", name="Change weights").click()
    expect(page.locator(".message")).to_contain_text("1 query is changed")
