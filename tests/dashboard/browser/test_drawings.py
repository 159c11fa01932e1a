"""Drawings of the server have a label with the finding, keys that read out points, and a table."""

import re
import time

import pytest
from django.conf import settings
from playwright.sync_api import Locator, Page, expect

from controlplane.catalog.coordinates import Coordinates
from controlplane.models import Proposal, Task
from controlplane.topology import streams
from controlplane.topology.coordinates import set_coordinates
from controlplane.topology.streams import StreamSpec
from controlplane.wire.producer import Producer
from tests.controlplane.records.test_stream_map import PLACES
from tests.dashboard.browser.conftest import PATIENCE_S, apart, log_in
from tests.dashboard.browser.test_explain import rush_hour
from tests.support import cluster as made
from tests.support.execution import batch, begun, scattered, under_way

pytestmark = pytest.mark.browser


def _read_out(page: Page, drawing: Locator, key: str) -> str:
    """Press a key that moves to another point, and return what the drawing reads out."""
    before = drawing.get_attribute("data-point")
    page.keyboard.press(key)
    end = time.monotonic() + PATIENCE_S
    while drawing.get_attribute("data-point") == before and time.monotonic() < end:
        page.wait_for_timeout(50)
    return drawing.get_attribute("data-point") or ""


def _open_table(page: Page, drawing: Locator) -> Locator:
    """Open the table by its one button, with the keyboard, and return its rows."""
    region = f"{drawing.get_attribute('id')}-table"
    expect(page.locator(f"#{region}")).to_be_hidden()
    button = page.locator(f'[aria-controls="{region}"]')
    expect(button).to_have_count(1)
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator(f"#{region}")).to_be_visible()
    expect(button).to_have_attribute("aria-expanded", "true")
    return page.locator(f"#{region} tbody tr")


def _explained(page: Page, web: str, moment: str = "") -> Locator:
    """Open the panel of a node with a load and return its drawing."""
    apart(rush_hour, patience_s=180)
    log_in(page, web, "a-operator")
    index = apart(lambda: Task.objects.get().node.index)
    page.goto(f"/clusters/sf/nodes/{index}/?explain=node:{index}{moment}")
    return page.locator("#panel .explain-plot")


def test_keys_step_through_the_samples_of_an_explanation(page: Page, web: str) -> None:
    """In the panel, whose own arrows step in time."""
    plot = _explained(page, web, f"@{1000 * int(time.time() - 180)}")
    expect(plot).to_have_role("img")
    expect(plot).to_have_attribute("aria-label", re.compile(r"Load of node \d: .+"))
    rows = _open_table(page, plot)
    newest, previous = (": ".join(rows.nth(i).locator("td").all_inner_texts()) for i in (0, 1))
    subject = page.locator("#panel .explanation").get_attribute("data-subject")
    plot.focus()
    assert _read_out(page, plot, "ArrowRight") == newest
    assert _read_out(page, plot, "ArrowLeft") == previous
    assert _read_out(page, plot, "End") == newest
    assert _read_out(page, plot, "Home") not in ("", newest, previous)
    expect(plot.locator(".current-point")).to_have_count(1)
    assert page.locator("#panel .explanation").get_attribute("data-subject") == subject
    page.keyboard.press("Escape")
    expect(plot.locator(".current-point")).to_have_count(0)
    expect(plot).to_have_count(1)


@pytest.mark.nightly("browser")
def test_a_refresh_keeps_point_table_and_focus(page: Page, web: str) -> None:
    """A live explanation is replaced every ten seconds."""
    plot = _explained(page, web)
    _open_table(page, plot)
    plot.focus()
    assert _read_out(page, plot, "Home")
    plot.evaluate("element => { element.dataset.old = 'yes'; }")
    expect(page.locator("#panel .explain-plot:not([data-old])")).to_have_count(1)
    expect(plot).to_have_attribute("data-point", re.compile(": "))
    expect(plot.locator(".current-point")).to_have_count(1)
    expect(plot).to_be_focused()
    expect(page.locator("#explain-plot-table")).to_be_visible()


def _executing() -> Proposal:
    by = made.actor("approver")
    proposal = begun(by, scattered(by, made.small_cluster(by)))
    step = under_way(proposal)
    assert step is not None
    batch(proposal.cluster, step)
    return proposal


@pytest.mark.nightly("browser")
def test_keys_step_through_the_transfers_of_an_execution(page: Page, web: str) -> None:
    proposal = apart(_executing, patience_s=180)
    log_in(page, web, "a-approver")
    page.goto(f"/clusters/sf/proposals/{proposal.pk}/")
    gantt = page.locator("#gantt")
    expect(gantt).to_have_role("img")
    expect(gantt).to_have_attribute(
        "aria-label", re.compile(r"Transfers of \d+ links?: \d+ of \d+ planned ones measured")
    )
    rows = _open_table(page, gantt)
    expect(rows).to_have_count(gantt.locator("title").count())
    gantt.focus()
    texts = [", ".join(row.locator("td").all_inner_texts()) for row in rows.all()]
    first = _read_out(page, gantt, "Home")
    assert first == texts[0]
    later = _read_out(page, gantt, "ArrowDown")
    assert later in texts
    assert later.split(", ")[0] != first.split(", ")[0], "another link"
    assert re.search(r"Step \d+, (planned|measured|in progress): ", later)


def _mapped() -> int:
    by = made.actor("operator")
    cluster = made.small_cluster(by)
    (stream,) = streams.register(by, cluster, [StreamSpec("places", schema=PLACES.to_json())])
    set_coordinates(by, stream, Coordinates("a", "b"))
    places = [(0.0, 0.0), (0.0, 0.0), (4.0, 0.0), (10.0, 0.0), (0.0, 5.0)]
    with Producer(settings.REDIS_URL, cluster.slug) as producer:
        values = [{"name": "n", "a": a, "b": b} for a, b in places]
        producer.append({stream.pk: values}, schemas={stream.pk: PLACES})
    return stream.pk


@pytest.mark.nightly("browser")
def test_keys_step_through_the_tiles_of_a_map(page: Page, web: str) -> None:
    """Left and right in a row, up and down to the nearest tile of the next row."""
    stream = apart(_mapped)
    log_in(page, web, "a-operator")
    page.goto(f"/clusters/sf/streams/{stream}/")
    page.locator("#map").scroll_into_view_if_needed()
    tiles = page.locator("#tile-map")
    expect(tiles).to_have_attribute("aria-label", re.compile("Map of places: 4 tiles with values"))
    expect(_open_table(page, tiles)).to_have_count(4)
    tiles.focus()
    north_west = _read_out(page, tiles, "Home")
    assert north_west.endswith("from a 0, b 4.64286")
    assert _read_out(page, tiles, "ArrowDown").endswith("from a 0, b 0")
    assert "from a 9.6" in _read_out(page, tiles, "End")
    assert "from a 3.9" in _read_out(page, tiles, "ArrowLeft")
    assert _read_out(page, tiles, "ArrowUp") == north_west


@pytest.mark.nightly("browser")
def test_a_stored_result_of_the_lab_is_a_chart(page: Page, web: str) -> None:
    """With axes, the finding in its label, keys, a table, and the files of its figures."""
    apart(lambda: made.actor("viewer"))
    log_in(page, web, "a-viewer")
    page.goto("/lab/placement/fig5a/")
    chart = page.locator(".chart[data-figure=replication_factor]")
    expect(chart).to_have_attribute("aria-label", re.compile("1 of 1 claim holds"))
    expect(chart.locator(".ytitle")).to_have_text("Replication factor")
    expect(chart.locator(".xtitle")).to_contain_text("source popularity")
    chart.focus()
    assert re.fullmatch(r"Least cost, 3: [\d.]+", _read_out(page, chart, "End"))
    assert "Least cost, 1: " in _read_out(page, chart, "Home")
    page.get_by_role("button", name="as a table").click()
    expect(page.locator(".chart-table tbody tr")).to_have_count(9)
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    assert download.value.suggested_filename == "placement-fig5a-stored.csv"
