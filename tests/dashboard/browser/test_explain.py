"""Two clicks from the fleet to the cause; the panel of explanations by mouse and keyboard."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from algorithms.partitioning.replay import key_hashes
from controlplane.access.roles import Actor
from controlplane.models import Cluster, KeySkew, Node, Query, RoutingVersion, Task
from controlplane.telemetry import time_series
from controlplane.topology import nodes
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.explaining import record_past, steps
from tests.support.key_samples import sampled

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


def slow_node() -> str:
    """Lower the capacity of a node below its load."""
    by, cluster = _cluster()
    node = _placed(by, cluster)
    record_past(
        cluster, timezone.now(), [steps(200, 200, 1)] * 4,
        {made.stream_id(cluster, "s0"): steps(200, 200, 1)},
    )  # fmt: skip
    nodes.configure(by, node, "maintenance", capacity=120, emulated=True)
    return f"capacity of {node.name} was set from 500 to 120 records/s"


def rush_hour() -> str:
    """Let the only stream of a node rise to three times its capacity."""
    by, cluster = _cluster()
    node = _placed(by, cluster)
    loads = [steps(100, 1500 if index == node.index else 100, 6) for index in range(4)]
    rates = {made.stream_id(cluster, "s0"): steps(100, 1500, 6)}
    record_past(cluster, timezone.now(), loads, rates)
    return "Stream s0 rose from"


def hot_key() -> str:
    """Let a key of a split query rise until its node is above its capacity."""
    by, cluster = _cluster()
    query, now = made.placed_split(by, cluster, key_grouping="key"), timezone.now()
    RoutingVersion.objects.update(created_at=now - timedelta(hours=2))
    Cluster.objects.update(last_batch=int(now.timestamp()))
    sampled(query, now, {"taxi": 900, **{f"car {i}": 1 for i in range(300)}}, splits=2)
    starts = [now - timedelta(minutes=6, seconds=10 * place) for place in range(20)]
    KeySkew.objects.bulk_create(
        KeySkew(query=query, seconds=10, t=start, top_share=0.02, top10_share=0.1, imbalance=0.01,
                pairs=300, records_per_s=300, grouping="key")
        for start in starts
    )  # fmt: skip
    node = _host_of_first_key(query)
    loads = [steps(75, 800 if index == node else 80, 5) for index in range(4)]
    rates = {made.stream_id(cluster, name): steps(150, 500, 5) for name in ("s0", "s1")}
    record_past(cluster, now, loads, rates)
    return "Key taxi of query q has"


def _host_of_first_key(query: Query) -> int:
    """Return the node of the task of the first of 301 keys."""
    task = key_hashes(301).tolist()[0] % query.task_count
    ranges = Task.ranges(Task.objects.filter(query=query))[query.pk]
    return next(node for node, first, stop in ranges if first <= task < stop)


@pytest.mark.parametrize(
    "scenario",
    [
        slow_node,
        pytest.param(rush_hour, marks=pytest.mark.nightly("browser")),
        pytest.param(hot_key, marks=pytest.mark.nightly("browser")),
    ],
)
def test_the_cause_is_two_clicks_from_the_fleet(
    page: Page, web: str, scenario: Callable[[], str]
) -> None:
    def prepared() -> str:
        cause = scenario()
        time_series.roll_up(timezone.now())
        return cause

    cause = apart(prepared)
    log_in(page, web, "a-operator")
    page.goto("/")
    explain = page.locator('main a[href*="explain"]').first
    if not explain.is_visible():
        page.locator('main a[href="/clusters/sf/"]').first.click()
        explain = page.locator("main [data-explain]").first
    explain.click()
    panel = page.locator(".explanation")
    expect(panel.locator(".cause")).to_contain_text(cause)
    expect(panel.locator(".chip").first).to_have_text("above limit")


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
