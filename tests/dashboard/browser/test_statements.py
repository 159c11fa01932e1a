"""The page Results in a real browser: keys, chart, links, both themes, wide and narrow."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from controlplane.models import Query
from controlplane.queries.spec import QuerySpec
from controlplane.topology import queries
from controlplane.wire.query_text import QueryText
from tests.dashboard.browser.conftest import apart, log_in
from tests.dashboard.browser.test_every_page import NARROW, accessibility_faults, narrow_faults
from tests.support import cluster as made
from tests.support.axe import axe_source
from tests.support.windows import write_windows

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]
SHIFTS = "window.weirShift = 0;"


@pytest.fixture
def query(web: str) -> Query:
    """Twenty windows of one car."""
    return apart(_query)


def _query() -> Query:
    by = made.actor("operator")
    text = QueryText({"n": "count(*)", "fast": "max(speed)"}, 60.0, key=("car",))
    query = queries.submit(by, made.small_cluster(by), QuerySpec("trips-by-car", ("s0",), text))
    stream = query.streams.get()
    rows = [{"pane": 60_000 * i, "stream": stream.pk, "k0": 1007, "s0": i + 1} for i in range(20)]
    write_windows(query, 1, rows)
    return query


@pytest.fixture
def judged(chromium: Browser, web: str) -> Iterator[Page]:
    """A page with axe-core."""
    context = chromium.new_context(base_url=web, reduced_motion="reduce")
    context.add_init_script(SHIFTS)
    context.add_init_script(axe_source())
    yield context.new_page()
    context.close()


def test_a_statement_is_run_by_keys_and_linked(page: Page, web: str, query: Query) -> None:
    log_in(page, web, "a-operator")
    page.goto("/clusters/sf/results/")
    expect(page.locator("nav a[aria-current=page]").first).to_have_text(re.compile("Results"))
    statement = page.get_by_label("SQL")
    expect(statement).to_have_value(re.compile('FROM "trips-by-car"'))
    statement.fill('SELECT window_start, n FROM "trips-by-car" WHERE n > 15 ORDER BY n DESC')
    statement.press("Control+Enter")
    rows = page.locator("#rows tbody tr")
    expect(rows).to_have_count(5)
    expect(rows.first.locator("td").nth(1)).to_have_text("20")
    assert "statement=SELECT" in page.url
    expect(page.locator("#rows .js-plotly-plot")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download csv").click()
    assert download.value.suggested_filename == "sf-results.csv"
    statement = page.get_by_label("SQL")
    statement.fill('SELECT nn FROM "trips-by-car"')
    statement.press("Control+Enter")
    expect(page.locator("#faults-statement")).to_contain_text("Line 1, column 8")
    page.locator("summary", has_text="trips-by-car").click()
    expect(page.locator("#views dd", has_text="timestamptz").first).to_be_visible()
    page.get_by_role("link", name="Show rows of trips-by-car").click()
    expect(page.locator("#statement-card")).to_be_visible()


def test_the_page_is_accessible_in_both_themes_and_narrow(
    judged: Page, web: str, query: Query
) -> None:
    log_in(judged, web, "a-operator")
    statement = 'SELECT window_start, window_end, car, n, fast, kept FROM "trips-by-car"'
    judged.set_viewport_size(NARROW)
    for path in ("/clusters/sf/results/", f"/clusters/sf/results/?statement={statement}"):
        judged.goto(path)
        faults = narrow_faults(judged)
        judged.set_viewport_size({"width": 1280, "height": 900})
        faults += accessibility_faults(judged)
        judged.set_viewport_size(NARROW)
        assert faults == [], "\n".join(faults)
