"""One range for the whole page of a cluster: picker, strip, zoom, steps, keys, and its URL."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from controlplane.models import Cluster
from tests.dashboard.browser.conftest import apart, log_in
from tests.dashboard.browser.test_live_pages import (
    answering,
    cluster_with_samples,
    eventually,
    measured,
    now,
)
from tests.dashboard.conftest import sample

pytestmark = pytest.mark.browser

AXIS = "document.querySelector('[data-figure={}]').layout.xaxis.range.map((t) => +new Date(t))"


@pytest.fixture
def cluster(web: str) -> Cluster:
    """Four nodes, one running query, samples."""
    return apart(cluster_with_samples)


@pytest.fixture
def opened(page: Page, web: str, cluster: Cluster) -> Page:
    """The page of a cluster with drawn charts."""
    log_in(page, web, "a-operator")
    page.goto("/clusters/sf/?range=15m")
    page.locator("#charts").scroll_into_view_if_needed()
    expect(page.locator("[data-figure=rates] .main-svg").first).to_be_visible()
    return answering(page)


def length(page: Page, name: str = "latency") -> Any:
    """Return the minutes that a chart shows."""
    start, end = page.evaluate(AXIS.format(name))
    return (end - start) / 60_000


def test_the_picker_changes_every_part_in_place(opened: Page) -> None:
    opened.evaluate("window.kept = true")
    opened.get_by_role("button", name="Last 15 min").click()
    opened.get_by_role("link", name="Last 6 h").click()
    expect(opened).to_have_url(re.compile(r"\?range=6h$"))
    expect(opened.locator("#strip .top b")).to_have_text("Last 6 h")
    opened.locator("#nodes").scroll_into_view_if_needed()
    expect(opened.locator("#nodes th").nth(3)).to_have_text("Last 6 h")
    opened.locator("#charts").scroll_into_view_if_needed()
    eventually(opened, f"{AXIS.format('latency')}[1] - {AXIS.format('latency')}[0] > 21590000")
    assert opened.evaluate("window.kept"), "the page was not loaded again"
    opened.go_back()
    expect(opened.locator("#range-label")).to_have_text("Last 15 min")


@pytest.mark.nightly("browser")
def test_the_zoom_of_one_chart_is_that_of_all_and_survives_samples(
    opened: Page, cluster: Cluster
) -> None:
    chart = opened.locator("[data-figure=imbalance] .nsewdrag").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    opened.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 60)
    opened.mouse.down()
    opened.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 60, steps=4)
    opened.mouse.up()
    expect(opened).to_have_url(re.compile(r"\?from=\d+&to=\d+$"))
    expect(opened.locator("#strip .top")).to_contain_text("past figures")
    eventually(opened, f"{AXIS.format('latency')}.join() === {AXIS.format('imbalance')}.join()")
    zoomed = opened.evaluate(AXIS.format("latency"))
    assert length(opened) == pytest.approx(6.0, abs=0.5)
    measured(cluster, sample(now()))
    expect(opened.locator("#connection")).to_have_text("stored data")
    assert opened.evaluate(AXIS.format("latency")) == zoomed


@pytest.mark.nightly("browser")
def test_keys_move_the_brush_step_and_pause(opened: Page) -> None:
    opened.locator(".brush").focus()
    opened.keyboard.press("Shift+ArrowLeft")
    expect(opened.locator("#range-label")).to_have_text("Last 19 min")
    opened.locator("#content").focus()
    opened.keyboard.press("ArrowLeft")
    expect(opened).to_have_url(re.compile(r"\?from="))
    opened.keyboard.press("ArrowRight")
    expect(opened).to_have_url(re.compile(r"\?range="))
    opened.keyboard.press(" ")
    expect(opened.locator("#connection")).to_have_text("paused")


@pytest.mark.nightly("browser")
def test_a_cell_of_the_heat_map_is_explained(opened: Page, cluster: Cluster) -> None:
    """The link on the selected cell is moved by the arrow keys, and is an ordinary link."""
    cell = opened.locator("#heat-cell")
    cell.focus()
    for _ in range(4):
        opened.keyboard.press("ArrowUp")
    opened.keyboard.press("ArrowDown")
    expect(cell).to_have_attribute("data-explain", re.compile(r"^node:1@\d+$"))
    expect(cell).to_have_attribute("href", re.compile(r"explain=node%3A1%40\d+"))
    opened.keyboard.press("Enter")
    expect(opened.locator("#panel")).to_contain_text("node 1")
