"""Dropping some of a stream, and choosing a key grouping, in a real browser."""

import re

import pytest
from playwright.sync_api import Page, expect

from algorithms.partitioning.catalog import GROUPINGS
from controlplane.models import Cluster, Drop, Query
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]


@pytest.fixture
def split(web: str) -> Query:
    """A query over eight tasks that a node merges; it reads s0 and s1."""
    return apart(_split)


def _split() -> Query:
    by = made.actor("operator")
    return made.placed_split(by, made.small_cluster(by), "split", "key")


@pytest.fixture
def operating(page: Page, web: str, split: Query) -> Page:
    """An operator's browser."""
    log_in(page, web, "a-operator")
    page.goto("/")
    expect(page.locator("#fleet-title")).to_be_visible()
    return page


def opened(page: Page, path: str) -> Page:
    page.goto(path)
    page.locator("body[data-ready]").wait_for(state="attached")
    return page


def test_a_drop_is_set_changed_and_lifted(operating: Page, split: Query) -> None:
    """Windows have fields of their own; the row has a dialog, and a button that lifts at once."""
    stream = apart(lambda: made.stream_id(Cluster.objects.get(), "s0"))
    page = opened(operating, f"/clusters/sf/streams/{stream}/")
    expect(page.locator("#drop-rows")).to_contain_text("All records are delivered to all queries")
    page.get_by_role("button", name="Drop…").click()
    expect(page.get_by_label("Together")).to_be_hidden()
    page.get_by_label("Whole windows").check()
    expect(page.get_by_label("Together")).to_be_visible()
    page.get_by_label("On the edge").select_option("split")
    page.locator("#drop-share").fill("30")
    page.locator("#drop-new").get_by_role("button", name="Drop", exact=True).click()
    expect(page.locator(".message")).to_have_text("s0 to split drops 30 % of its 60 s windows.")
    page.locator("body[data-ready]").wait_for(state="attached")
    page.get_by_role("button", name="Change…").click()
    page.locator(".dialog:popover-open input[name=percent]").fill("45")
    page.locator(".dialog:popover-open").get_by_role("button", name="Drop", exact=True).click()
    expect(page.locator("table.drops tbody")).to_contain_text("45 %")
    page.get_by_role("button", name="Lift").click()
    expect(page.locator("#drop-rows")).to_contain_text("All records are delivered to all queries")
    assert apart(Drop.objects.count) == 0


def test_the_key_grouping_is_chosen_in_a_dialog(operating: Page, split: Query) -> None:
    page = opened(operating, f"/clusters/sf/queries/{split.pk}/")
    page.get_by_role("button", name="Key grouping").click()
    dialog = page.locator(".dialog:popover-open")
    dialog.get_by_label("Key grouping").select_option("random_choices")
    expect(dialog.get_by_text(GROUPINGS["random_choices"].about)).to_be_visible()
    expect(dialog.get_by_text(GROUPINGS["key"].about)).to_be_hidden()
    dialog.get_by_text("Parameters").filter(visible=True).click()
    dialog.get_by_role("textbox", name="Uneven load allowed").fill("-1")
    dialog.get_by_role("button", name="Change", exact=True).click()
    expect(dialog.locator("#faults-key_grouping_parameters")).to_contain_text("Must be at least 0")
    expect(dialog.get_by_role("textbox", name="Uneven load allowed")).to_have_value("-1")
    dialog.get_by_role("textbox", name="Uneven load allowed").fill("0.05")
    dialog.get_by_role("button", name="Change", exact=True).click()
    title = GROUPINGS["random_choices"].title
    expect(page.get_by_role("button", name=f"{title} (uneven load allowed = 0.05)")).to_be_visible()
    expect(page.locator("#facts")).to_contain_text(GROUPINGS["random_choices"].about)


def test_the_form_of_a_query_shows_the_parameters_of_the_chosen_grouping(
    operating: Page, split: Query
) -> None:
    """Only those are sent, and their faults are shown while they are written."""
    page = opened(operating, "/clusters/sf/queries/new/")
    fields = page.locator("fieldset.grouping")
    expect(fields.filter(visible=True)).to_have_count(0)
    page.fill("#name", "hot")
    page.fill("#streams", "s0")
    page.fill("#key", "car")
    page.get_by_text("More settings").click()
    page.fill("#tasks", "4")
    page.select_option("#key_grouping", "random_choices")
    expect(fields.filter(visible=True)).to_have_count(1)
    fields.get_by_text("Parameters").filter(visible=True).click()
    eps = page.locator('[name="random_choices.eps"]')
    eps.fill("-1")
    expect(page.locator("#faults-key_grouping_parameters")).to_contain_text("Must be at least 0")
    eps.fill("0.05")
    expect(page.locator("#faults-key_grouping_parameters")).to_be_empty()
    page.get_by_role("button", name="Submit query").click()
    page.wait_for_url(re.compile(r"/queries/\d+/"))
    query = apart(lambda: Query.objects.get(name="hot"))
    assert (query.key_grouping, query.key_grouping_parameters) == ("random_choices", {"eps": 0.05})


@pytest.mark.parametrize("width", [1280, 400])
def test_the_pages_do_not_scroll_sideways(operating: Page, split: Query, width: int) -> None:
    """Also with the dialogs open."""
    stream = apart(lambda: made.stream_id(Cluster.objects.get(), "s0"))
    page = operating
    page.set_viewport_size({"width": width, "height": 900})
    for path, button in (
        (f"/clusters/sf/streams/{stream}/", "Drop…"),
        (f"/clusters/sf/queries/{split.pk}/", "Key grouping"),
    ):
        opened(page, path).get_by_role("button", name=button).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
