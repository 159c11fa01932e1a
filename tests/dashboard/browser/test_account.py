"""The account in a real browser: log in, change the password, log out; open pages follow."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.browser.conftest import apart
from tests.support import cluster as made

pytestmark = pytest.mark.browser
# Connected: without telemetry the badge reads "no data" after five seconds.
CONNECTED = re.compile("good|warn")
OLD, NEW = "a long enough password", "another long password"


def _account() -> None:
    made.small_cluster(made.actor("operator"))
    user = made.actor("viewer", "alice").user
    user.set_password(OLD)
    user.save()


def fill_in(page: Page, **fields: str) -> None:
    for label, value in fields.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(value)


def test_open_pages_follow_their_session(page: Page, web: str) -> None:
    """A change of the password keeps this browser; a log-out ends its other pages as well."""
    apart(_account)
    page.goto("/clusters/sf/")
    fill_in(page, User_name="alice", Password=OLD)
    page.get_by_role("button", name="Log in").click()
    expect(page.locator("#connection")).to_have_attribute("data-grade", CONNECTED)
    other = page.context.new_page()
    other.goto("/account/")
    fill_in(other, Current_password=OLD, New_password=NEW, Repeat_new_password=NEW)
    other.get_by_role("button", name="Change password").click()
    expect(other.get_by_role("status").first).to_contain_text("changed")
    expect(other.get_by_text("this session")).to_be_visible()
    expect(page.locator("#connection")).to_have_attribute("data-grade", CONNECTED)
    other.get_by_role("button", name="Log out", exact=True).click()
    expect(page.get_by_label("User name")).to_be_visible()
    assert "/login/" in page.url
