"""Two clicks from the fleet to the cause; the panel of explanations by mouse and keyboard."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from controlplane.access.roles import Actor
from controlplane.models import Cluster, Node, RoutingVersion, Task
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.disturbed import SCENARIOS
from tests.support.explaining import record_past, steps

pytestmark = pytest.mark.browser


def _cluster() -> tuple[Actor, Cluster]:
    by = made.actor("operator")
    cluster = made.small_cluster(by)
    Cluster.objects.update(desired="running", state="running")
    return by, cluster


def _placed(by: Actor, cluster: Cluster) -> Node:
    """Place a query on s0 long ago, and return its node."""
    (query,) = made.placed(by, cluster, {"busy": ["s0"]})
    RoutingVersion.objects.update(created_at=timezone.now() - timedelta(hours=2))
    cluster.refresh_from_db()
    return Task.objects.get(query=query).node


def rush_hour() -> str:
    """Let the only stream of a node rise to three times its capacity."""
    by, cluster = _cluster()
    node = _placed(by, cluster)
    loads = [steps(100, 1500 if index == node.index else 100, 6) for index in range(4)]
    rates = {made.stream_id(cluster, "s0"): steps(100, 1500, 6)}
    record_past(cluster, timezone.now(), loads, rates)
    return "Stream s0 rose from"


@pytest.mark.parametrize(
    "scenario",
    [
        "two_at_once",
        *(
            pytest.param(name, marks=pytest.mark.nightly("browser"))
            for name in ("hot_key", "slow_node")
        ),
    ],
)
def test_the_panel_is_two_clicks_from_the_fleet_and_moves_nothing(
    page: Page, web: str, scenario: str
) -> None:
    """It lies over the page: what is behind it keeps its place, and the remedies are in view."""
    apart(lambda: SCENARIOS[scenario](made.actor("operator"), timezone.now()), 60)
    log_in(page, web, "a-operator")
    page.goto("/")
    page.locator("main a[href*=explain]").first.click()
    panel = page.locator("#panel .explanation")
    expect(panel.locator(".cause")).to_contain_text("Likely cause")
    for width in (1440, 1024):
        page.set_viewport_size({"width": width, "height": 900})
        expect(panel.get_by_role("heading", name="What would end it")).to_be_in_viewport()
        cards = page.locator("main .card")
        opened = [card.bounding_box() for card in cards.all()]
        panel.get_by_role("button", name="Close").click()
        assert [card.bounding_box() for card in cards.all()] == opened
        page.locator("main .headline [data-explain]").click()
    page.set_viewport_size({"width": 400, "height": 800})
    expect(panel.get_by_role("heading", name="What would end it")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@pytest.mark.nightly("browser")
def test_the_panel_steps_by_arrows_and_closes_by_escape(page: Page, web: str) -> None:
    apart(rush_hour)
    log_in(page, web, "a-operator")
    index = apart(lambda: Task.objects.get().node.index)
    page.goto(f"/clusters/sf/nodes/{index}/")
    opener = page.locator("main .headline [data-explain]")
    opener.click()
    panel = page.locator("#panel .explanation")
    expect(panel.locator(".cause")).to_contain_text("Stream s0 rose")
    assert page.evaluate("new URL(location.href).searchParams.get('explain')") == f"node:{index}"
    page.keyboard.press("ArrowLeft")
    expect(panel).to_have_attribute("data-subject", re.compile(rf"node:{index}@\d{{13}}"))
    page.keyboard.press("ArrowUp" if index else "ArrowDown")
    other = index - 1 if index else 1
    expect(panel).to_have_attribute("data-subject", re.compile(rf"node:{other}@"))
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)
    expect(opener).to_be_focused()
    assert "explain=" not in page.url
    page.go_back()
    expect(panel).to_have_attribute("data-subject", re.compile(rf"node:{other}@"))
    panel.get_by_role("button", name="Close").click()
    opener.click()
    panel.get_by_role("button", name="Request this plan").first.click()
    expect(page).to_have_url(re.compile(r"/proposals/\d+/"))
