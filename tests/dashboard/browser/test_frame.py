"""The frame of all pages: the palette by keyboard alone, definitions of measures, keys."""

import pytest
from django.contrib.staticfiles.storage import staticfiles_storage
from playwright.sync_api import Page, expect

from controlplane.models import Cluster
from dashboard.frame.keys import KEYS
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made

pytestmark = pytest.mark.browser


@pytest.fixture
def operating(page: Page, web: str) -> Page:
    """An operator's browser on the page of a cluster."""

    def create() -> None:
        by = made.actor("operator")
        cluster = made.small_cluster(by)
        made.placed(by, cluster, {"taxi": ["s0"], "taxi-by-hour": ["s1"]})
        Cluster.objects.update(desired="running", state="running")

    apart(create)
    log_in(page, web, "a-operator")
    page.goto("/clusters/sf/")
    expect(page.locator("body")).to_have_attribute("data-ready", "yes")
    return page


def test_a_column_without_values_is_hidden(operating: Page) -> None:
    """Nothing is known about the capacity of a split node before its first records."""
    operating.goto("/clusters/sf/streams/")
    heads = operating.locator("th", has_text="Split node").first.locator("xpath=..")
    expect(heads.locator("th", has_text="Streams")).to_be_visible()
    expect(heads.locator("th", has_text="Free")).to_be_hidden()


def test_the_palette_opens_what_is_typed_by_keyboard_alone(operating: Page) -> None:
    """What was opened is the first entry the next time."""
    page = operating
    palette = page.get_by_role("dialog", name="Search or run a command")
    page.keyboard.press("Control+k")
    expect(palette.get_by_role("option", name="Create query")).to_be_visible()
    page.keyboard.type("taxi")
    expect(palette.get_by_role("option")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    selected = palette.locator('[aria-selected="true"]')
    expect(selected).to_contain_text("taxi-by-hour")
    field = palette.get_by_role("combobox")
    assert field.get_attribute("aria-activedescendant") == selected.get_attribute("id")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="taxi-by-hour", exact=True)).to_be_visible()
    expect(page.locator("body")).to_have_attribute("data-ready", "yes")
    page.keyboard.press("Control+k")
    recent = palette.get_by_role("group", name="Recent")
    expect(recent.get_by_role("option")).to_contain_text(["taxi-by-hour"])
    page.keyboard.type("use dark")
    expect(palette.get_by_role("option")).to_have_count(1)
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    expect(palette).to_be_hidden()


@pytest.mark.nightly("browser")
def test_measures_show_their_definition_and_keys_their_effect(operating: Page) -> None:
    """By pointer and by focus; Escape hides it. Every declared key has an effect."""
    page = operating
    tooltip = page.locator("#term")
    page.locator(".tile [data-term]", has_text="Imbalance").hover()
    expect(tooltip).to_contain_text("most loaded node")
    page.mouse.move(0, 0)
    expect(tooltip).to_be_hidden()
    tile = page.locator("a.tile", has_text="Replication factor")
    page.locator("a.tile").first.focus()
    while not tile.evaluate("element => element === document.activeElement"):
        page.keyboard.press("Tab")
    expect(tooltip).to_contain_text("Deliveries to nodes")
    assert tile.get_attribute("aria-describedby") == "term"
    page.keyboard.press("Escape")
    expect(tooltip).to_be_hidden()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys.locator("dd")).to_have_text([key.text for key in KEYS])
    module = staticfiles_storage.url("js/keys.js")
    actions = page.evaluate(f"async () => Object.keys((await import('{module}')).ACTIONS)")
    assert sorted(actions) == sorted(key.action for key in KEYS if key.action)
