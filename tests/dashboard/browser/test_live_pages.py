"""Pages in a real browser: live charts, keys, the theme, the form."""

import re
import time
from typing import Any

import numpy as np
import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from playwright.sync_api import Page, expect

from controlplane.events.publish import send_samples
from controlplane.models import Cluster
from tests.dashboard.browser.conftest import PATIENCE_S, apart, log_in
from tests.dashboard.conftest import add_samples, sample
from tests.support import cluster as made

pytestmark = pytest.mark.browser


@pytest.fixture
def cluster(web: str) -> Cluster:
    """Four nodes, one running query, samples."""
    return apart(cluster_with_samples)


def cluster_with_samples() -> Cluster:
    """Return a cluster of four nodes with one running query and samples."""
    by = made.actor("operator")
    found = made.small_cluster(by)
    made.placed(by, found, {"a": ["s0"]})
    add_samples(found)
    return found


@pytest.fixture
def operating(page: Page, web: str, cluster: Cluster) -> Page:
    """An operator's browser, on the fleet."""
    log_in(page, web, "a-operator")
    page.goto("/")
    expect(page.locator("#fleet-title")).to_be_visible()
    return page


def measured(cluster: Cluster, *samples: dict[str, Any]) -> None:
    """Send samples to the browsers, as the relay does."""
    apart(lambda: send_samples(cluster.pk, list(samples)))


def eventually(page: Page, condition: str) -> None:
    """Wait until a condition holds; wait_for_function needs eval, which the policy forbids."""
    end = time.monotonic() + PATIENCE_S
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(30)


def answering(page: Page) -> Page:
    """Wait until the page's script has started."""
    page.locator("body[data-ready]").wait_for(state="attached")
    return page


def now() -> int:
    return int(time.time() * 1000)


def live(page: Page) -> Page:
    """Open the cluster and wait until its charts are drawn and its socket is open."""
    page.goto("/clusters/sf/?range=5m")
    # The stored samples may be older than the badge calls live, on a busy machine.
    expect(page.locator("#connection")).to_contain_text(re.compile("live|no data for"))
    page.locator("#charts").scroll_into_view_if_needed()
    expect(page.locator("[data-figure=rates] .main-svg").first).to_be_visible()
    return page


# The page breaks the line where samples are seconds apart, with points that have no value.
POINTS = "document.querySelector('[data-figure=rates]').data[0].y.filter((y) => y != null).length"


def points(page: Page) -> Any:
    """Return how many samples the first line of the rates holds."""
    return page.evaluate(POINTS)


def test_a_sample_is_on_the_charts_and_in_the_numbers(operating: Page, cluster: Cluster) -> None:
    """Charts and heat map, without a reload."""
    page = live(operating)
    before = points(page)
    # Above the limit also as a mean with a stored sample of the same cell.
    measured(cluster, sample(now(), version=77, loads=[1500.0, 250.0, 250.0, 250.0]))
    expect(page.locator("#routing-version")).to_have_text("routing v77")
    eventually(page, "(window.weirChartDelays ?? []).length > 0")
    assert points(page) == before + 1
    expect(page.locator("#heat-area canvas")).to_have_attribute(
        "aria-label", re.compile("node 0 exceeds 100 %")
    )
    assert 0 <= page.evaluate("window.weirChartDelays.at(-1)") < 5000


@pytest.mark.nightly("browser")
def test_new_points_extend_the_drawn_lines(operating: Page, cluster: Cluster) -> None:
    """Plotly lays a chart out again only when its scale or the places of names must change."""
    page = live(operating)
    # Of lines that a gap divides, the newest parts.
    lines = "[...document.querySelectorAll('[data-figure=rates] path.js-line:last-of-type')]"
    page.evaluate(
        "window.counts = 0; const react = window.Plotly.react;"
        "window.Plotly.react = (...all) => { window.counts += 1; return react(...all); };"
        f"window.drawn = {lines}.map((line) => line.getAttribute('d'))"
    )
    measured(cluster, sample(now()))
    longer = "line.getAttribute('d').length > window.drawn[i].length"
    eventually(page, f"{lines}.every((line, i) => {longer})")
    assert page.evaluate("window.counts") == 0


@pytest.mark.nightly("browser")
def test_a_plan_that_takes_effect_is_marked(operating: Page, cluster: Cluster) -> None:
    """Versions of single placements are not: the strip shows them as a density."""
    page = live(operating)
    about = {"version": 78, "text": "Proposal 7: 2 queries moved", "proposal": 7}
    page.evaluate("(detail) => dispatchEvent(new CustomEvent('weir:event!', { detail }))", about)
    measured(cluster, sample(now(), version=78))
    marks = "document.querySelector('[data-figure=rates]').data.at(-1).text"
    eventually(page, f"{marks}.includes('◆ 7')")


@pytest.mark.nightly("browser")
def test_a_paused_page_draws_nothing_and_catches_up(operating: Page, cluster: Cluster) -> None:
    """By its key: a click would scroll to the button, and charts out of view are not drawn."""
    page = live(operating)
    before = points(page)
    page.keyboard.press("Space")
    expect(page.locator("#connection")).to_have_text("paused")
    counts = "addEventListener('weir:sample!', () => { window.seen = (window.seen ?? 0) + 1; })"
    page.evaluate(counts)
    measured(cluster, sample(now()), sample(now() + 1000))
    eventually(page, "window.seen === 2")
    assert points(page) == before
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Pause updates")).to_be_visible()
    eventually(page, f"{POINTS} === {before + 2}")


@pytest.mark.nightly("browser")
def test_a_part_out_of_view_waits_until_it_is_seen(operating: Page) -> None:
    """Flow and nodes are below the first screen: they are not requested meanwhile."""
    asked: list[str] = []
    operating.on("request", lambda request: asked.append(request.url.rpartition("/sf/")[2]))
    operating.goto("/clusters/sf/")
    page = answering(operating)
    expect(page.locator("#flow .sub")).to_have_text("loading")
    page.evaluate("document.body.dispatchEvent(new CustomEvent('weir:event'))")
    page.wait_for_timeout(500)
    parts = {path.partition("/")[0] for path in asked}
    assert "summary" in parts
    assert not {"flow", "node-list"} & parts
    with page.expect_request("**/clusters/sf/node-list/**"):
        page.locator("#nodes").scroll_into_view_if_needed()
    expect(page.locator("#flow .sub")).not_to_have_text("loading")
    assert any(path.startswith("flow/") for path in asked)


@pytest.mark.nightly("browser")
def test_the_badge_reports_silence_when_it_is_long_enough(
    operating: Page, cluster: Cluster
) -> None:
    page = live(operating)
    script = """() => new Promise((resolve) => {
      const badge = document.getElementById("connection");
      addEventListener("weir:sample!", () => {
        const heard = performance.now();
        new MutationObserver(() => {
          if (badge.dataset.grade === "warn") resolve(performance.now() - heard);
        }).observe(badge, { attributes: true });
      }, { once: true });
    })"""
    page.evaluate("window.silence = null")
    page.evaluate(f"({script})().then((ms) => {{ window.silence = ms; }}); 0")
    measured(cluster, sample(now()))
    eventually(page, "window.silence !== null")
    assert page.evaluate("window.silence") >= 5000


@pytest.mark.nightly("browser")
def test_the_keys_lead_to_the_pages(operating: Page) -> None:
    page = live(operating)
    page.keyboard.press("g")
    page.keyboard.press("q")
    expect(page.get_by_role("heading", name="Queries")).to_be_visible()
    answering(page).keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="a", exact=True)).to_be_visible()


@pytest.mark.nightly("browser")
def test_the_theme_is_kept(operating: Page) -> None:
    answering(operating).keyboard.press("t")
    chosen = operating.evaluate("document.documentElement.dataset.theme")
    operating.goto("/help/")
    assert operating.evaluate("document.documentElement.dataset.theme") == chosen == "dark"


@pytest.mark.nightly("browser")
def test_the_form_says_what_is_wrong_while_one_types(operating: Page) -> None:
    operating.goto("/clusters/sf/queries/new/")
    operating.get_by_label("Name", exact=True).fill("a")
    expect(operating.locator("#faults-name")).to_contain_text("called a already")
    operating.locator("#suggested button").first.click()
    operating.get_by_label("Name", exact=True).fill("fresh")
    expect(operating.locator("#faults-name")).to_be_empty()
    operating.get_by_role("button", name="Submit query").click()
    expect(operating.get_by_role("heading", name="fresh")).to_be_visible()


def test_selected_queries_end_after_a_second_click(operating: Page) -> None:
    operating.goto("/clusters/sf/queries/")
    operating.get_by_label("Select a", exact=True).check()
    operating.get_by_role("button", name="End…").click()
    dialog = operating.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("over")
    dialog.get_by_role("button", name="End queries").click()
    expect(operating.get_by_text("The query is ending.")).to_be_visible()


@pytest.mark.nightly("browser")
def test_limits_are_corrected_in_their_dialog(operating: Page, cluster: Cluster) -> None:
    """A refusal stands at its field, and the dialog stays open with what was typed."""
    operating.goto("/clusters/sf/")
    page = answering(operating)
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("button", name="Limits…").click()
    dialog = page.get_by_role("dialog", name="Limits of a micro-batch")
    dialog.locator("#limit-records").fill("12")
    dialog.get_by_role("button", name="Change limits").click()
    expect(dialog.locator("#faults-max_records")).to_contain_text("greater than or equal to 1000")
    expect(dialog.locator("#limit-records")).to_have_value("12")
    dialog.locator("#limit-records").fill("50,000")
    dialog.get_by_role("button", name="Change limits").click()
    expect(page.get_by_text("has at most 50,000 records and 64 MiB")).to_be_visible()
    expect(dialog).to_be_hidden()


@pytest.mark.nightly("browser")
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("path", ["/", "/clusters/sf/", "/clusters/sf/queries/", "/help/"])
def test_no_page_scrolls_sideways(operating: Page, width: int, path: str) -> None:
    operating.set_viewport_size({"width": width, "height": 900})
    operating.goto(path)
    assert operating.evaluate("document.documentElement.scrollWidth") <= width


# Charts as they are drawn: words and places of ticks, ends and marks, and the last points of the
# parts of lines: Plotly draws the parts that a gap divides as paths of their own.
DRAWN = """() => [...document.querySelectorAll("#charts [data-figure]")].map((chart) => {
  const all = (selector) => [...chart.querySelectorAll(selector)];
  const places = (selector) => all(selector).map((part) => {
    const { left, top } = part.getBoundingClientRect();
    return [left, top];
  }).sort(([a], [b]) => a - b);
  const words = (selector) => all(selector).map((text) => text.textContent).sort();
  const [ticks, ends] = [".xaxislayer-above g.xtick text", ".textpoint text"];
  const last = (part) => part.split("L").at(-1).split(",").map(Number);
  const parts = (line) => line.getAttribute("d").split("M").slice(1);
  return {
    words: [words(ticks), words(ends)],
    places: [ticks, ends, ".xaxislayer-above path.xtick", ".xy2 path"].flatMap(places),
    lines: all("path.js-line").flatMap(parts).map(last),
  };
})"""
# Samples of so many seconds after the newest one, with what the last one measures.
PLAY = """([count, measured]) => {
  const samples = [];
  for (let i = 1; i <= count; i += 1) {
    samples.push({ ...window.newest, t: window.newest.t + 1000 * i });
  }
  Object.assign(samples.at(-1), measured);
  window.newest = samples.at(-1);
  dispatchEvent(new CustomEvent("weir:sample!", { detail: samples }));
}"""
COUNTED = """() => {
  window.counts = 0;
  const react = window.Plotly.react;
  window.Plotly.react = (...all) => { window.counts += 1; return react(...all); };
}"""
MOVED = (
    "[...document.querySelectorAll('#charts [data-figure]')].every((e) => e.weirLines.moved > 0)"
)


def played(page: Page, gap_ms: int = 0) -> Page:
    """Draw the mark of a plan and the newest sample, which `PLAY` repeats; count what follows."""
    page.evaluate(
        "addEventListener('weir:sample!', ({ detail }) => { window.newest = detail.at(-1); })"
    )
    about = {"version": 78, "text": "Proposal 7: 2 queries moved", "proposal": 7}
    page.evaluate("(detail) => dispatchEvent(new CustomEvent('weir:event!', { detail }))", about)
    newest = sample(now() + gap_ms, version=78)
    page.evaluate("(newest) => { window.newest = newest; }", newest)
    page.evaluate(PLAY, [1, {}])
    eventually(page, "document.querySelectorAll('#charts .xy2 .textpoint text').length === 4")
    page.evaluate(COUNTED)
    return page


@pytest.mark.nightly("browser")
@pytest.mark.parametrize("gap_ms", [0, 20_000])
def test_a_moved_axis_is_what_plotly_would_draw(
    operating: Page, cluster: Cluster, gap_ms: int
) -> None:
    page = played(live(operating), gap_ms)
    page.evaluate(PLAY, [25, {"imbalance": 0.07}])
    eventually(page, MOVED)
    assert page.evaluate("window.counts") == 0
    moved = page.evaluate(DRAWN)
    page.evaluate(
        "document.querySelectorAll('#charts [data-figure]')"
        ".forEach((chart) => chart.dispatchEvent(new Event('pointerenter')))"
    )
    assert page.evaluate("window.counts") == len(moved) == 4
    for ours, plotlys in zip(moved, page.evaluate(DRAWN), strict=True):
        assert ours["words"] == plotlys["words"]
        for part in ("places", "lines"):
            assert np.array(ours[part]) == pytest.approx(np.array(plotlys[part]), abs=0.5)
    assert moved[1]["words"][1] == ["◆ 7"], "the tile has the value"


@pytest.mark.nightly("browser")
def test_plotly_draws_a_chart_under_the_pointer(operating: Page, cluster: Cluster) -> None:
    """What it shows at the pointer are the points that it has drawn."""
    page = played(live(operating))
    page.hover("[data-figure=imbalance]")
    page.evaluate(PLAY, [25, {}])
    eventually(page, "window.counts === 1")
    shown = "document.querySelector('[data-figure=imbalance]').weirLines.moved"
    assert page.evaluate(shown) == 0


@pytest.mark.nightly("browser")
def test_the_names_of_nodes_stand_beside_their_cells(operating: Page, cluster: Cluster) -> None:
    """Of sixty-four nodes, whose rows are lower than text usually is."""
    page = live(operating)
    heights = page.evaluate(
        """async (module) => {
          const { HeatMap } = await import(module);
          const heat = new HeatMap(document.getElementById("heat"));
          const nodes = Array.from({ length: 64 }, (_, i) => [i, `node ${i}`, 100]);
          heat.load({ start: 0, step: 1000, nodes, shares: nodes.map(() => [0.5]) }, false);
          const { top, height } = document.getElementById("heat-area").getBoundingClientRect();
          return [...document.querySelectorAll("#heat-names a")].map((name, i) => {
            const box = name.getBoundingClientRect();
            return Math.abs(box.top + box.height / 2 - top - ((i + 0.5) * height) / 64);
          });
        }""",
        staticfiles_storage.url("js/heat.js"),
    )
    assert len(heights) == 64
    assert max(heights) < 2
