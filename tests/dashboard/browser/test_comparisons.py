"""Comparing in a real browser, with a real worker: asked for, watched, one plan opened, changed."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from controlplane.models import Cluster, LedgerEntry, Node, Proposal, Task
from tests.dashboard.browser.conftest import apart
from tests.dashboard.browser.test_live_pages import answering, eventually, operating
from tests.support.cluster import actor, placed, small_cluster

__all__ = ["operating"]
pytestmark = pytest.mark.browser


def scattered_cluster() -> Cluster:
    """Sixty queries on six streams, wherever they happened to be."""
    by = actor("operator")
    cluster = small_cluster(by)
    rows = placed(by, cluster, {f"q{i}": sorted({f"s{i % 6}", f"s{i % 5}"}) for i in range(60)})
    nodes = list(Node.objects.order_by("index"))
    for number, query in enumerate(rows):
        Task.objects.filter(query=query).update(node=nodes[(number // 3) % 4])
    Cluster.objects.update(desired="running")
    return cluster


def written_ledger() -> None:
    """An entry of each proposal, none of them quite true."""
    for at, one in enumerate(Proposal.objects.exclude(predicted={})):
        off = 1 + 0.15 * (at - 1)
        promised = {
            "imbalance": one.predicted["imbalance"] or 0.02, "bytes": 250_000.0 * (at + 1),
            "replication_factor": one.predicted["replication_factor"], "pause_ms": 2000.0,
            "latency_ms": 900.0,
        }  # fmt: skip
        LedgerEntry.objects.create(
            proposal=one, cluster=one.cluster, planner=one.planner, algorithm=one.algorithm,
            approved=promised, expected=promised,
            measured={name: off * value for name, value in promised.items()},
            applied=len(one.actions), samples=30, at=timezone.now() - timedelta(minutes=at),
        )  # fmt: skip


@pytest.fixture
def cluster(web: str) -> Cluster:
    """Four nodes with sixty queries."""
    return apart(scattered_cluster)


@pytest.mark.nightly("browser")
def test_plans_are_compared_one_is_opened_and_loses_a_move(
    operating: Page, celery_worker: None
) -> None:
    """From the form over progress and chart to a proposal without one of its moves."""
    operating.goto("/clusters/sf/compare/")
    page = answering(operating)
    page.get_by_text("Budget").first.click()
    page.get_by_label("Levels").fill("25, 100")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".head .chip", has_text="ready")).to_be_visible(timeout=180_000)
    eventually(page, "document.querySelector('[data-figure=imbalance]')?.data?.length > 1")
    table = page.url
    rows = page.get_by_role("region", name="Plans").locator("tbody tr")
    assert rows.count() >= 2
    point = page.locator("[data-figure=imbalance] .scatterlayer .point").first
    point.hover(force=True)
    point.click(force=True)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Proposal ")
    page.locator("#effects-fold > summary").click()
    boxes = page.locator("#effects input[name=place]")
    expect(boxes.first).to_be_visible()
    count = boxes.count()
    boxes.first.check()
    page.get_by_role("button", name="Leave out the chosen actions").click()
    expect(page.get_by_text("actions, with its own fingerprint")).to_be_visible()
    page.locator("#effects-fold > summary").click()
    expect(boxes).to_have_count(count - 1)
    apart(written_ledger)
    for path in ("/clusters/sf/ledger/", "/clusters/sf/compare/", table):
        for width in (1280, 400):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
