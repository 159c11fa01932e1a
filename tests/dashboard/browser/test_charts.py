"""Each chart has a role, a label, keys and a table; the live regions of a page are quiet."""

import re
import time
from itertools import pairwise
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from controlplane.events.publish import announce, event, send_samples
from controlplane.models import Cluster
from tests.dashboard.browser.conftest import PATIENCE_S, apart, log_in
from tests.dashboard.conftest import sample
from tests.support import cluster as made
from tests.support.pages import PageAddress, page_world

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]

CHARTS: Final = "main .chart[data-figure]"
# Charts in folded parts are drawn with the others; those of other pages' drawings have a table
# in a part that opens below them.
DRAWINGS: Final = ".explain-plot, .gantt, .tile-map, #heat"
ANNOUNCEMENT_S: Final = 5.0


@pytest.fixture
def pages(web: str) -> list[PageAddress]:
    """The pages of a cluster with rows of every kind."""
    return apart(lambda: page_world(made.actor("admin")), patience_s=120)


def test_charts_have_role_label_keys_and_table(
    page: Page, web: str, pages: list[PageAddress]
) -> None:
    """On every page: what a chart shows can be read without seeing it, or using a pointer."""
    log_in(page, web, "a-admin")
    faults, seen, stepped = [], 0, 0
    for address in pages:
        page.goto(address.path)
        if address.name == "api" or not page.locator(f"{CHARTS}, {DRAWINGS}").count():
            continue
        for chart in page.locator(CHARTS).all():
            seen += 1
            fault = _fault(page, chart)
            if fault:
                faults.append(f"{address.name}, {chart.get_attribute('data-figure')}: {fault}")
            stepped += bool(chart.get_attribute("data-point"))
        faults += [f"{address.name}: {text}" for text in _drawings_without_table(page)]
    assert faults == [], "\n".join(faults)
    assert seen > 15
    assert stepped > 5, "keys step through the points of charts with data"


_HAS_POINTS: Final = """element => (element.data ?? []).some((trace) => trace.mode !== "text"
  && trace.hoverinfo !== "skip" && trace.visible !== false
  && [...(trace.z?.flat() ?? trace.y ?? [])].some((value) => (value ?? null) !== null))"""


def _fault(page: Page, chart: Any) -> str:
    """Return what is missing of a chart, "" for nothing."""
    # Live charts are drawn in view only; a chart in a folded part takes no focus.
    chart.evaluate(
        "element => { const part = element.closest('details'); if (part) part.open = true;"
        " element.scrollIntoView(); }"
    )
    if not _equipped(page, chart):
        return "has no table"
    if chart.get_attribute("role") != "img" or not chart.get_attribute("aria-label"):
        return "has no role or label"
    if chart.get_attribute("tabindex") != "0":
        return "cannot be focused"
    region = page.locator(f"#{chart.evaluate('element => element.weirTable.id')}")
    button = page.locator(f'[aria-controls="{region.get_attribute("id")}"]')
    button.evaluate("element => element.click()")
    if button.get_attribute("aria-expanded") != "true" or not region.locator("tbody tr").count():
        return "has an empty table"
    if chart.evaluate(_HAS_POINTS):
        chart.evaluate("element => element.focus()")
        page.keyboard.press("ArrowLeft")
        if not chart.get_attribute("data-point"):
            return "does not answer to arrow keys"
    return ""


def _equipped(page: Page, chart: Any) -> bool:
    end = time.monotonic() + PATIENCE_S / 3
    while time.monotonic() < end:
        if chart.evaluate("element => Boolean(element.weirTable)"):
            return True
        page.wait_for_timeout(50)
    return False


def _drawings_without_table(page: Page) -> list[str]:
    """Return the drawings of the server whose card has no table."""
    names: list[str] = page.evaluate(_WITHOUT_TABLE, DRAWINGS)
    return names


_WITHOUT_TABLE: Final = """(selector) => [...document.querySelectorAll(selector)].filter((part) => {
  const card = part.closest("figure")?.parentElement ?? part.closest("section, .explanation");
  card.querySelector("[aria-controls^=chart-table]")?.click();
  return !card.querySelector("table tbody tr");
}).map((part) => part.id || part.className)"""


def test_a_page_announces_at_most_once_in_five_seconds(page: Page, web: str) -> None:
    """Many events and samples: screen readers hear one text per five seconds, none is lost."""
    cluster = apart(lambda: made.small_cluster(made.actor("operator")))
    log_in(page, web, "a-operator")
    page.goto("/clusters/sf/?range=5m")
    expect(page.locator("#connection")).to_contain_text(re.compile("live|no data for"))
    page.evaluate(_WATCH)
    begin = time.monotonic()
    number = 0
    while time.monotonic() < begin + 2.5 * ANNOUNCEMENT_S:
        number += 1
        apart(lambda n=number: _burst(cluster, n))  # type: ignore[misc]
        page.wait_for_timeout(300)
    end = time.monotonic() + PATIENCE_S
    while f"event {number}" not in "".join(_texts(page)) and time.monotonic() < end:
        page.wait_for_timeout(100)
    changes = page.evaluate("window.announced")
    assert f"event {number}" in changes[-1]["text"]
    times = [change["t"] / 1000 for change in changes]
    assert len(times) >= 3
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) >= ANNOUNCEMENT_S - 0.1, changes


# Each change of a live region with its time; changes of one moment are one announcement.
_WATCH: Final = """() => {
  window.announced = [];
  const live = "[aria-live], [role=status], [role=alert], [role=log]";
  new MutationObserver((changes) => {
    const texts = new Set();
    for (const { target } of changes) {
      const element = target.nodeType === 1 ? target : target.parentElement;
      const region = element?.closest(live);
      if (region) texts.add(region.textContent);
    }
    if (texts.size) window.announced.push({ t: performance.now(), text: [...texts].join(" | ") });
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def _texts(page: Page) -> list[str]:
    return [change["text"] for change in page.evaluate("window.announced")]


def _burst(cluster: Cluster, number: int) -> None:
    """Send an event and a sample to the page."""
    announce(cluster.pk, event("routing", f"event {number}", version=number))
    send_samples(cluster.pk, [sample(int(time.time() * 1000))])
