"""The page of load shedding in a browser: charts, arming in a dialog, a narrow window."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, expect

from controlplane.access.roles import Actor
from controlplane.models import ArmedLadder, Cluster, Query, SheddingInterval
from controlplane.planners.shedding.arming import arm
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


def _arm() -> None:
    by = Actor(User.objects.get(username="a-operator"), "192.0.2.7")
    arm(by, Cluster.objects.get(), "needed")


def _interval() -> None:
    """Store an interval in which s0 lost a tenth at the input, and `low` 300 records more."""
    cluster, now = Cluster.objects.get(), timezone.now()
    stream, query = cluster.streams.get(name="s0").pk, Query.objects.get(name="low").pk
    Query.objects.update(placed_at=now - timedelta(hours=1))
    SheddingInterval.objects.create(
        cluster=cluster, rung=1, position=0.7, started_at=now - timedelta(minutes=9),
        ended_at=now - timedelta(minutes=8), read=1000, dropped=400,
        by_edge=[[stream, query, 300], [stream, 0, 100]], by_stream=[[stream, 1000]],
    )  # fmt: skip


def test_a_ladder_is_armed_and_drilled(page: Page, busy: None) -> None:
    page.goto("/clusters/sf/shedding/")
    page.locator("body[data-ready]").wait_for(state="attached")
    expect(page.locator("#shedding-finding")).to_contain_text("Not enabled")
    expect(page.locator('[data-figure="feasible"] .heatmaplayer')).to_have_count(1)
    page.get_by_role("button", name="Enable shedding plan…").click()
    dialog = page.locator("#arm")
    dialog.get_by_role("button", name="Enable shedding plan").click()
    expect(dialog).to_contain_text("Give a reason")
    dialog.get_by_label("Reason").fill("the sale begins")
    dialog.get_by_role("button", name="Enable shedding plan").click()
    expect(page.locator(".message")).to_contain_text(
        "drop levels is enabled from the next batch on"
    )
    assert apart(lambda: ArmedLadder.objects.get().reason) == "the sale begins"
    page.locator("body[data-ready]").wait_for(state="attached")
    start = f"{timezone.now() - timedelta(minutes=20):%Y-%m-%dT%H:%M}"
    page.get_by_label("From").fill(start)
    page.get_by_role("button", name="Run drill").click()
    expect(page.locator("#drill")).to_contain_text("Time above capacity")
    expect(page.locator('[data-figure="drill"] .scatterlayer')).to_have_count(1)


@pytest.mark.nightly("browser")
def test_a_ladder_is_disarmed_for_an_hour(page: Page, busy: None) -> None:
    apart(_arm)
    page.goto("/clusters/sf/shedding/")
    page.locator("body[data-ready]").wait_for(state="attached")
    page.get_by_role("button", name="Disable…").click()
    dialog = page.locator("#disarm")
    dialog.get_by_label("Enable again").select_option("in 1 hour")
    dialog.get_by_label("Reason").fill("a load test")
    dialog.get_by_role("button", name="Disable shedding plan").click()
    expect(page.locator(".message")).to_contain_text("No shedding plan is enabled until")
    expect(page.locator("#shedding-finding")).to_contain_text(
        "a-operator disabled the shedding plan"
    )


@pytest.mark.nightly("browser")
def test_the_history_shows_what_each_query_kept(page: Page, busy: None) -> None:
    apart(_interval)
    page.set_viewport_size({"width": 400, "height": 900})
    page.goto("/clusters/sf/shedding/")
    page.locator("body[data-ready]").wait_for(state="attached")
    row = page.locator("#shedding-history tbody tr")
    expect(row).to_contain_text("low 60 %")
    row.locator("summary").click()
    expect(row).to_contain_text("high 90 %, minimum kept 50 %: 100 of 1,000 dropped")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.nightly("browser")
def test_a_narrow_window_does_not_scroll_sideways(page: Page, busy: None) -> None:
    page.set_viewport_size({"width": 400, "height": 900})
    page.goto("/clusters/sf/shedding/")
    page.locator("body[data-ready]").wait_for(state="attached")
    expect(page.locator("#shedding-rungs")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.get_by_role("button", name="Edit weights and minimums kept…").click()
    weights = page.locator("#weights")
    weights.get_by_label("Weight of low").fill("3")
    weights.get_by_label("Minimum kept of low in percent").fill("10")
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    weights.get_by_role("button", name="Change weights").click()
    expect(page.locator(".message")).to_contain_text("1 query is changed")
