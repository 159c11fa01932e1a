"""The policy's form and dialogs in a real browser."""

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from controlplane.models import Blackout, Policy
from tests.dashboard.browser.conftest import apart
from tests.support import cluster as made

pytestmark = pytest.mark.browser
PHRASE = "a-long-pass-phrase"


@pytest.fixture
def ruling(page: Page) -> Page:
    """An admin's browser."""
    apart(_set_up)
    page.goto("/login/")
    page.get_by_label("User name").fill("a-admin")
    page.get_by_label("Password").fill(PHRASE)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#fleet-title")).to_be_visible()
    return page


def _set_up() -> None:
    by = made.actor("admin")
    assert isinstance(by.user, User)
    by.user.set_password(PHRASE)
    by.user.save()
    made.small_cluster(by)


def test_a_policy_is_set_and_a_blackout_added(ruling: Page) -> None:
    """At a phone's width too nothing scrolls sideways, and the dialog asks for what it needs."""
    ruling.set_viewport_size({"width": 400, "height": 900})
    ruling.goto("/clusters/sf/policy/")
    ruling.locator("body[data-ready]").wait_for(state="attached")
    ruling.get_by_label("Move tasks of split queries").check()
    ruling.get_by_label("Gain, at least").fill("7.5")
    ruling.get_by_role("button", name="Save policy").click()
    expect(ruling.locator(".message")).to_have_text("The policy of SF is as you set it.")
    expect(ruling.locator(".headline")).to_contain_text(
        "Moves of tasks, redirections of streams and shedding plans apply automatically"
    )
    assert apart(lambda: Policy.objects.get().settings["auto_gain"]) == 0.075
    ruling.locator("body[data-ready]").wait_for(state="attached")
    ruling.locator("#blackouts").get_by_role("button", name="Add blackout…").click()
    dialog = ruling.locator("#blackout-new")
    expect(dialog.get_by_label("From")).to_be_hidden()
    dialog.get_by_label("Cron expression").fill("30 6 * * 1-5")
    dialog.get_by_label("For minutes").fill("180")
    dialog.get_by_label("Reason").fill("rush")
    assert ruling.evaluate("document.documentElement.scrollWidth") <= 400
    dialog.get_by_role("button", name="Add blackout").click()
    expect(ruling.locator("#blackouts")).to_contain_text("At 06:30 on Monday through Friday")
    assert apart(Blackout.objects.count) == 1
