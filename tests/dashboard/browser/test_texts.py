"""The form of a query in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from controlplane.models import Cluster, Query
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.windows import write_windows

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]
NEW = "/clusters/sf/queries/new/"


@pytest.fixture
def cluster(web: str) -> Cluster:
    """Four nodes, six streams."""
    return apart(_cluster)


def _cluster() -> Cluster:
    by = made.actor("operator")
    return made.small_cluster(by)


@pytest.fixture
def operating(page: Page, web: str, cluster: Cluster) -> Page:
    """An operator's browser, on the form."""
    log_in(page, web, "a-operator")
    page.goto(NEW)
    page.locator("body[data-ready]").wait_for(state="attached")
    return page


def test_the_form_points_at_the_place_while_one_types(operating: Page) -> None:
    page = operating
    page.get_by_label("Where").fill("spede > 3")
    expect(page.locator("#faults-where .marks")).to_have_text("^^^^^")
    expect(page.locator("#outcome")).to_contain_text("Correct: where")
    family = "getComputedStyle(document.querySelector('#faults-where pre')).fontFamily"
    assert "monospace" in page.evaluate(family)
    page.get_by_label("Where").fill("speed > 3")
    expect(page.locator("#faults-where")).to_be_empty()
    expect(page.locator("#outcome li")).to_have_text(["stream text, key", "records int"])


def test_a_click_on_a_column_writes_its_aggregates(operating: Page) -> None:
    page = operating
    page.locator("#key").fill("car")
    page.get_by_title("Count, mean, minimum and maximum of speed").click()
    expect(page.locator("#key")).to_have_value("stream")
    expect(page.locator("#outcome li")).to_have_text(
        ["stream text, key", "records int", "mean_speed float", "min_speed int", "max_speed int"]
    )


def test_a_query_is_submitted_and_shows_its_results(operating: Page, cluster: Cluster) -> None:
    page = operating
    page.get_by_label("Name", exact=True).fill("fast")
    page.locator("#suggested button").first.click()
    page.locator("#columns").fill("kmh = speed * 0.036")
    page.locator("#key").fill("car")
    page.locator("#aggregates").fill("n = count(*)\nfast = max(kmh)")
    expect(page.locator("#outcome li")).to_have_text(["car int, key", "n int", "fast float"])
    page.get_by_role("button", name="Submit query").click()
    page.wait_for_url(re.compile(r"/queries/\d+/"))
    expect(page.locator("pre.sql")).to_contain_text("max(kmh) AS fast")
    apart(_write)
    page.reload()
    expect(page.locator("#results tbody tr").first).to_contain_text("1007")
    page.get_by_label("Chart of").select_option("fast")
    expect(page.locator("[data-figures] .main-svg").first).to_be_visible()
    expect(page.locator("[data-figures] h2")).to_have_text("fast")


def test_a_join_is_written_checked_and_submitted(operating: Page, cluster: Cluster) -> None:
    """The section opens, a click fills the side in use, and a folded join says that it is on."""
    page = operating
    page.get_by_label("Name", exact=True).fill("crossing")
    expect(page.get_by_label("Right streams")).to_be_hidden()
    page.locator("#suggested button").first.click()
    page.locator(".join summary").click()
    page.get_by_label("Right streams").click()
    expect(page.locator("#fills")).to_have_text("Right streams")
    page.locator("#suggested button").nth(1).click()
    expect(page.get_by_label("Right streams")).to_have_value("s4")
    expect(page.get_by_label("Streams", exact=True)).to_have_value("s5")
    expect(page.locator("#usable")).to_contain_text("b.speed")
    page.locator("#on").fill("car <-> cab")
    page.locator("#key").fill("a.car")
    page.locator("#aggregates").fill("n = count(*)")
    expect(page.locator("#faults-on .marks")).to_have_text("^^^")
    page.locator("#on").fill("car <-> car")
    expect(page.locator("#outcome li")).to_have_text(["a.car int, key", "n int"])
    page.locator(".join summary").click()
    marked = "getComputedStyle(document.querySelector('.join summary'), '::after').content"
    assert page.evaluate(marked) == '"on"'
    page.get_by_role("button", name="Submit query").click()
    page.wait_for_url(re.compile(r"/queries/\d+/"))
    expect(page.locator("pre.sql")).to_contain_text("a.car = b.car")


def _write() -> None:
    row = {"stream": 1, "k0": 1007, "s0": 12, "s1": 41.25}
    write_windows(Query.objects.get(name="fast"), 3, [row, row | {"pane": 60_000}])


@pytest.mark.parametrize("width", [1280, 400])
def test_the_form_does_not_scroll_sideways(operating: Page, width: int) -> None:
    """Also with a long line pointed at and the list of functions open."""
    page = operating
    page.set_viewport_size({"width": width, "height": 900})
    page.get_by_label("Where").fill(f"speed > {' + '.join(['x'] * 80)} and spede")
    expect(page.locator("#faults-where .marks")).to_be_visible()
    page.locator(".join summary").click()
    page.locator("#on").fill(f"{' + '.join(['x'] * 80)} + cab <-> car")
    expect(page.locator("#faults-on .marks")).to_be_visible()
    page.get_by_text("Functions and aggregates").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
