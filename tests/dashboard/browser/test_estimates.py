"""Estimates on the page of a query in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from controlplane.models import Cluster, Query
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries
from controlplane.wire.query_text import QueryText
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.windows import write_windows

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]


@pytest.fixture
def query(web: str) -> Query:
    """Two windows of a minute; a quarter of the records of the second one was kept."""
    return apart(_query)


def _query() -> Query:
    by = made.actor("operator")
    cluster: Cluster = made.small_cluster(by)
    text = QueryText({"n": "count(*)", "fast": "max(speed)"}, 60.0, key=("car",))
    query = queries.submit(by, cluster, QuerySpec("trips", ("s0",), text))
    stream = query.streams.get()
    row = {"stream": stream.pk, "k0": 1007, "s0": 200, "s1": 41}
    write_windows(query, 3, [row, row | {"pane": 60_000, "kept": 0.25}])
    return query


@pytest.mark.parametrize("width", [1280, 400])
def test_estimates_can_be_switched_off(page: Page, web: str, query: Query, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    log_in(page, web, "a-operator")
    page.goto(f"/clusters/sf/queries/{query.pk}/")
    rows = page.locator("#results tbody tr")
    expect(rows.first).to_contain_text("≈ 800")
    expect(rows.first).to_contain_text("25 %")
    expect(rows.nth(1)).to_contain_text("100 %")
    title = rows.first.locator("td[data-label=n]").get_attribute("title") or ""
    assert re.fullmatch(r"\d+ to \d+ with 95 % confidence; 200 in the kept records", title)
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    assert not page.evaluate(wide)
    page.get_by_role("link", name="Show values as computed").click()
    expect(rows.first.locator("td[data-label=n]")).to_have_text("200")
    page.get_by_text("Filter windows").click()
    page.locator("#window-state").select_option("open")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(rows.first.locator("td[data-label=n]")).to_have_text("200")
    page.get_by_role("link", name="Show scaled estimates").click()
    expect(rows.first.locator("td[data-label=n]")).to_have_text("≈ 800")
