"""The key microscope of a query in a real browser, on samples in a real Redis."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from controlplane.connections import redis_client
from controlplane.models import Cluster, Proposal, Query
from controlplane.wire import key_samples
from tests.dashboard.browser.conftest import apart, log_in
from tests.dashboard.browser.test_live_pages import eventually
from tests.support import cluster as made
from tests.support.key_reports import stored_samples
from tests.support.series import add_skews

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]


@pytest.fixture
def split(web: str) -> Query:
    """A query over eight tasks with a hot key, which was sampled until now."""
    return apart(_split)


def _split() -> Query:
    by = made.actor("operator")
    query = made.placed_split(by, made.small_cluster(by, nodes=8), "split", "key")
    Cluster.objects.update(desired="running", state="running")
    _sample(query, batch=1)
    now = timezone.now()
    skews = [(now - timedelta(seconds=10 * place), 0.1 * place) for place in range(3)]
    add_skews(query, skews, top_share=0.3, records=4000.0)
    return query


def _sample(query: Query, batch: int) -> None:
    samples = stored_samples(query, batch, round(1000 * time.time()))
    key_samples.write(redis_client(), query.cluster.slug, samples)


def test_the_keys_are_shown_and_a_plan_is_requested(page: Page, web: str, split: Query) -> None:
    faults: list[str] = []
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    log_in(page, web, "a-operator")
    page.goto(f"/clusters/sf/queries/{split.pk}/")
    page.get_by_label("Pages of the query").get_by_role("link", name="Keys", exact=True).click()
    expect(page.locator("#key-finding")).to_have_attribute("data-grade", "bad")
    expect(page.locator("#key-shares tbody tr")).to_have_count(20)
    expect(page.locator(".replay[data-recommended]")).to_have_count(1)
    expect(page.locator("[data-figure=skew] .main-svg").first).to_be_visible()
    expect(page.get_by_role("img", name="Imbalance")).to_be_visible()

    bar = page.locator("#key-shares tbody tr:first-child rect.log")
    expect(bar).to_be_hidden()
    page.get_by_role("radio", name="linear").press("ArrowRight")
    expect(bar).to_be_visible()

    page.set_viewport_size({"width": 400, "height": 900})
    eventually(page, "document.documentElement.scrollWidth === 400")

    page.locator("body[data-ready]").wait_for(state="attached")
    page.get_by_role("button", name="Change grouping…").click()
    expect(page.locator("#key_grouping fieldset.grouping").filter(visible=True)).to_have_count(1)
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Request plan").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Proposal")
    assert apart(lambda: Proposal.objects.get().planner) == "partitioning"
    assert faults == []


def test_a_sample_changes_the_page(page: Page, web: str, split: Query) -> None:
    """The tick of the page asks for the newest report; scale and focus stay."""
    log_in(page, web, "a-operator")
    page.goto(f"/clusters/sf/queries/{split.pk}/keys/")
    expect(page.locator("#key-finding code")).to_have_text("key 0")
    page.locator("body[data-ready]").wait_for(state="attached")
    page.get_by_text("log", exact=True).click()
    region = page.get_by_role("region", name="Where each key goes")
    region.focus()
    before = int(page.locator("#key-finding").get_attribute("data-sampled") or 0)
    apart(lambda: _sample(split, batch=2))
    page.evaluate("document.body.dispatchEvent(new CustomEvent('weir:sample'))")
    expect(page.locator("#key-finding")).to_have_attribute("data-sampled", str(2 * before))
    expect(page.locator("#key-shares rect.log").first).to_be_visible()
    expect(region).to_be_focused()
