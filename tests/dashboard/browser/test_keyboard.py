"""A proposal by the keyboard alone: found in the list, approved, stopped and rolled back.

Real web, Redis and browser; the test plays the worker and the pipeline, step by step. After each
key the focus is on something that a person sees.
"""

import pytest
from playwright.sync_api import Page, expect

from controlplane.models import AuditEntry, Proposal, Step
from tests.dashboard.browser.conftest import apart, log_in
from tests.dashboard.browser.test_proposals import acknowledge, state_of

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]

# More than any page has controls before the one that is looked for.
MOST_TABS = 60
# The focused element: what it is, and whether a person sees that it has the focus.
FOCUSED = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return { id: '', text: '', seen: false };
  const box = element.getBoundingClientRect();
  const isOutlined = (style) => style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0;
  // A field may have the outline around itself and its icon.
  const places = [element, element.parentElement];
  const outlined = places.some((place) => isOutlined(getComputedStyle(place)));
  const inView = box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
  return {
    id: element.id, tag: element.tagName, text: element.textContent.trim().slice(0, 60),
    seen: box.width > 0 && box.height > 0 && inView && outlined,
  };
}"""


def press(page: Page, key: str) -> None:
    """Press a key that moves the focus, and check that a person sees where it is."""
    page.keyboard.press(key)
    focused = page.evaluate(FOCUSED)
    assert focused["seen"], (key, focused)


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus."""
    target = page.locator(selector)
    for _ in range(MOST_TABS):
        if target.evaluate("element => element === document.activeElement"):
            return
        press(page, "Tab")
    raise AssertionError(f"{selector} is not among the next {MOST_TABS} places of the focus")


def expect_focus_in(page: Page, selector: str) -> None:
    """Wait until the focus is in an element, and check that a person sees it."""
    expect(page.locator(f"{selector}:focus-within, {selector}:focus")).to_have_count(1)
    focused = page.evaluate(FOCUSED)
    assert focused["seen"], focused


@pytest.mark.parametrize("proposal", [2], indirect=True)
def test_a_proposal_is_approved_stopped_and_rolled_back_by_keys(
    page: Page, web: str, proposal: Proposal
) -> None:
    log_in(page, web, "a-approver")
    page.goto("/clusters/sf/")
    page.locator("body[data-ready]").wait_for(state="attached")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    expect_focus_in(page, "#keys")
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()

    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url("**/proposals/")
    page.locator("body[data-ready]").wait_for(state="attached")
    press(page, "j")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/proposals/{proposal.pk}/")
    expect(page.locator("#connection")).to_contain_text("live")

    tab_to(page, "#do-approve")
    page.evaluate("document.body.dispatchEvent(new CustomEvent('weir:refresh'))")
    page.wait_for_timeout(500)
    expect_focus_in(page, "#do-approve")
    page.keyboard.press("Enter")
    expect_focus_in(page, "#say-approve")
    tab_to(page, "#say-approve .button.primary")
    page.keyboard.press("Enter")
    state_of(page, "approved")
    # The page is loaded again, and starts at what has changed.
    expect_focus_in(page, ".message")
    expect(page.locator("#connection")).to_contain_text("live")

    tab_to(page, "#do-withdraw")
    acknowledge(proposal)
    # The button is gone: the focus is on what can be done now.
    state_of(page, "executing")
    expect_focus_in(page, "#top .headline")

    tab_to(page, "#do-stop")
    page.keyboard.press("Enter")
    state_of(page, "stopped")
    # The reason is requested after the stop, by a field that has the focus.
    expect_focus_in(page, "#ask-reason")
    page.keyboard.type("half is enough")
    page.keyboard.press("Enter")
    expect(page.locator("#ask-reason")).to_have_count(0)

    tab_to(page, "#do-roll-back")
    page.keyboard.press("Enter")
    expect_focus_in(page, "#say-roll-back")
    page.keyboard.type("worse than thought")
    page.keyboard.press("Enter")
    state_of(page, "rolling back")
    for _ in range(2 + apart(Step.objects.count)):
        acknowledge(proposal)
    state_of(page, "rolled back")
    reasons = apart(lambda: dict(AuditEntry.objects.values_list("action", "reason")))
    assert reasons["proposal.roll_back"] == "worse than thought", reasons
    assert "half is enough" in reasons.values(), reasons
