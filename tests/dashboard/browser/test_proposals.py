"""A proposal in a real browser: approved, watched step by step, rolled back."""

import time

import pytest
from playwright.sync_api import Page, expect

from controlplane.models import Proposal, Step
from controlplane.proposals.executions import progression
from tests.dashboard.browser.conftest import apart, log_in
from tests.support.cluster import actor, placed_split
from tests.support.execution import batch, under_way

pytestmark = pytest.mark.browser


@pytest.fixture
def page_of(page: Page, web: str, proposal: Proposal) -> Page:
    """The approver's browser on the page of the proposal, live."""
    log_in(page, web, "a-approver")
    page.goto(f"/clusters/sf/proposals/{proposal.pk}/")
    expect(page.locator("#connection")).to_contain_text("live", timeout=20_000)
    return page


@pytest.fixture
def split(proposal: Proposal) -> None:
    """Let its cluster have a query of several tasks: the planner of migration is offered."""
    apart(lambda: placed_split(actor("operator"), proposal.cluster, "split"))


def acknowledge(proposal: Proposal) -> None:
    """Let a worker advance it and the pipeline report the step that follows."""

    def done() -> None:
        progression.advance(proposal.pk)
        step = under_way(proposal)
        if step is not None:
            batch(proposal.cluster, step)
            progression.advance(proposal.pk)

    apart(done)


def state_of(page: Page, word: str) -> None:
    expect(page.locator("#state")).to_have_attribute("data-state", word)


def drawn(page: Page, chart: str, count: int) -> None:
    """Wait until a chart's first line has so many points."""
    script = f"document.querySelector('[data-figure={chart}]')?.data?.[0].x.length"
    end = time.monotonic() + 15
    while page.evaluate(script) != count:
        assert time.monotonic() < end, f"{chart} has {page.evaluate(script)} points, not {count}"
        page.wait_for_timeout(50)


def test_it_is_approved_watched_paused_and_rolled_back(page_of: Page, proposal: Proposal) -> None:
    """Nobody reloads the page; live updates leave charts, dialogs and typed text alone."""
    page, actions = page_of, len(proposal.actions)
    drawn(page, "imbalance", actions + 1)
    page.evaluate("document.querySelector('[data-figure=imbalance]').dataset.same = 'yes'")
    page.get_by_placeholder("Add a comment").fill("after the peak")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".comment-text")).to_have_text("after the peak")
    page.locator("#do-approve").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved: exactly these actions are applied.")).to_be_visible()
    acknowledge(proposal)
    state_of(page, "executing")
    expect(page.locator("#top")).to_contain_text(f"1 of {actions} actions")
    page.reload()
    drawn(page, "steps", 2)
    page.evaluate("document.querySelector('[data-figure=steps]').dataset.same = 'yes'")
    page.locator("#do-roll-back").click()
    dialog = page.locator("#say-roll-back")
    dialog.get_by_label("Reason").fill("worse than thought")
    acknowledge(proposal)
    drawn(page, "steps", 3)
    expect(dialog.get_by_label("Reason")).to_have_value("worse than thought")
    assert page.evaluate("document.querySelector('[data-figure=steps]').dataset.same") == "yes"
    page.keyboard.press("Escape")
    page.locator("#do-pause").click()
    state_of(page, "paused")
    reason = page.locator("#ask-reason")
    reason.get_by_label("Reason").fill("a call")
    reason.get_by_role("button", name="Save reason").click()
    expect(page.locator("#ask-reason")).to_have_count(0)
    page.locator("#do-roll-back").click()
    dialog.get_by_label("Reason").fill("worse than thought")
    dialog.get_by_role("button", name="Roll back").click()
    state_of(page, "rolling back")
    expect(page.locator("#connection")).to_contain_text("live", timeout=20_000)
    for _ in range(apart(Step.objects.count) + actions):
        acknowledge(proposal)
    state_of(page, "rolled back")
    page.reload()
    expect(page.get_by_text("reverted in step").first).to_be_visible()
    expect(page.get_by_role("button", name="Recompute")).to_be_visible()


@pytest.mark.nightly("browser")
def test_a_cell_of_the_matrix_filters_the_actions_in_the_address(page_of: Page) -> None:
    cell = page_of.locator("#matrix a[data-filter]").first
    count, text = cell.inner_text(), cell.get_attribute("data-filter")
    cell.click()
    expect(page_of.locator("#actions [data-place]")).to_have_count(int(count))
    assert page_of.evaluate("new URL(location.href).searchParams.get('filter')") == text
    page_of.reload()
    expect(page_of.locator("#actions [data-place]")).to_have_count(int(count))
    page_of.get_by_label("Filter of the actions").fill("")
    page_of.get_by_label("Filter of the actions").press("Enter")
    expect(page_of.locator("#actions [data-place]")).not_to_have_count(int(count))


@pytest.mark.nightly("browser")
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_does_not_scroll_sideways(page_of: Page, proposal: Proposal, width: int) -> None:
    page_of.set_viewport_size({"width": width, "height": 900})
    page_of.locator("#do-approve").click()
    page_of.get_by_role("dialog").get_by_role("button", name="Approve").click()
    acknowledge(proposal)
    expect(page_of.locator("#steps table")).to_be_visible()
    assert page_of.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.nightly("browser")
@pytest.mark.usefixtures("split")
def test_the_form_follows_the_planner(page_of: Page) -> None:
    page_of.goto("/clusters/sf/proposals/")
    page_of.get_by_label("Own choice").check()
    page_of.get_by_label("Planner", exact=True).first.select_option("migration")
    expect(page_of.locator("#p-tau")).to_have_value("0.4")
    page_of.get_by_label("Algorithm", exact=True).select_option("consistent_hashing")
    expect(page_of.locator("#p-tokens")).to_be_attached()
    page_of.get_by_text("Parameters", exact=True).click()
    expect(page_of.get_by_label("Tokens of a node")).to_be_visible()
    expect(page_of.get_by_label("Planner", exact=True).first).to_have_value("migration")


@pytest.mark.nightly("browser")
@pytest.mark.usefixtures("split")
def test_a_choice_made_the_moment_the_form_is_there_counts(page_of: Page) -> None:
    """A field is bound as soon as it is seen: nobody's quick choice is lost."""
    page_of.goto("/clusters/sf/proposals/")
    page_of.evaluate("""new MutationObserver((_, watch) => {
        const field = document.querySelector('#algorithm');
        if (!field.querySelector('[value=consistent_hashing]')) return;
        watch.disconnect();
        field.value = 'consistent_hashing';
        field.dispatchEvent(new Event('change', {bubbles: true}));
    }).observe(document.querySelector('#ask'), {childList: true, subtree: true})""")
    page_of.get_by_label("Own choice").check()
    page_of.get_by_label("Planner", exact=True).first.select_option("migration")
    expect(page_of.locator("#p-tokens")).to_be_attached()
