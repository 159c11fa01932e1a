"""The account in a real browser: log-in, password, second factor; open pages follow."""

import base64
import os
import re
from pathlib import Path

import pytest
from django_otp.oath import totp
from playwright.sync_api import Page, expect
from pytest_django import Settings

from tests.dashboard.browser.conftest import apart
from tests.support import cluster as made
from tests.support.axe import axe_source, violations

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


@pytest.mark.nightly("browser")
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


def shown(page: Page, name: str) -> None:
    """Check the page by axe-core in both themes, at two widths, and keep pictures on request."""
    folder = os.environ.get("WEIR_SCREENSHOTS")
    # No colour is measured on its way.
    page.emulate_media(reduced_motion="reduce")
    for theme in ("light", "dark"):
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        for width in (400, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            if folder:
                file = Path(folder) / f"{name}-{theme}-{width}.png"
                page.screenshot(path=file, full_page=True)
        page.evaluate(axe_source())
        assert not violations(page), (name, theme)


def code_of(page: Page) -> str:
    """Return what an application shows for the secret on the page."""
    secret = page.locator(".secret-text code").inner_text()
    return f"{totp(base64.b32decode(secret)):06d}"


def confirm(page: Page, name: str) -> None:
    """Enter a wrong password, then the right one, on the page that asks for it."""
    password = page.get_by_label("Your password")
    expect(password).to_be_focused()
    shown(page, name)
    password.fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#faults-password")).to_contain_text("not your password")
    shown(page, f"{name}-wrong")
    password.fill(OLD)
    page.get_by_role("button", name="Confirm and continue").click()


def test_a_token_is_made_after_a_confirmation(page: Page, web: str) -> None:
    """The started form continues with what was entered; the next one asks no more."""
    apart(_account)
    page.goto("/tokens/")
    fill_in(page, User_name="alice", Password=OLD)
    page.get_by_role("button", name="Log in").click()
    for name in ('night\'s "job" <1>', "another"):
        page.get_by_label("Purpose").fill(name)
        page.get_by_label("Valid for").fill("3")
        page.get_by_role("button", name="Create token").click()
        if name != "another":
            confirm(page, "confirm-token")
        expect(page.locator("#secret")).to_contain_text("weir_")
        expect(page.get_by_role("heading", name=f"Token {name}")).to_be_visible()
    page.goto("/account/")
    expect(page.get_by_label("Revoke your 2 tokens")).to_be_checked()
    shown(page, "account-with-tokens")
    fill_in(page, Current_password=OLD, New_password=NEW, Repeat_new_password=NEW)
    page.get_by_role("button", name="Change password").click()
    expect(page.get_by_role("status").first).to_contain_text("2 tokens are revoked")


@pytest.mark.nightly("browser")
def test_a_second_factor_is_set_up_and_asked_for(page: Page, web: str) -> None:
    """Also by keyboard and for screen readers; a wrong code has its message at the field."""
    apart(_account)
    page.goto("/login/")
    fill_in(page, User_name="alice", Password=OLD)
    page.get_by_role("button", name="Log in").click()
    page.goto("/account/")
    shown(page, "account")
    section = page.get_by_role("region", name="Second factor")
    section.get_by_role("button", name="Set up second factor").click()
    confirm(page, "confirm")
    expect(page.get_by_role("img", name="QR code")).to_be_visible()
    shown(page, "set-up")
    page.get_by_role("textbox", name="Code").fill("000000")
    page.get_by_role("button", name="Set up second factor").click()
    expect(page.locator("#faults-code")).to_contain_text("not valid")
    page.get_by_role("textbox", name="Code").fill(code_of(page))
    page.get_by_role("button", name="Set up second factor").click()
    codes = page.locator(".recovery-codes code")
    expect(codes).to_have_count(10)
    recovery = codes.first.inner_text()
    shown(page, "codes")
    page.get_by_role("link", name="Continue").click()
    expect(page.get_by_text("10 recovery codes left")).to_be_visible()
    shown(page, "account-with-factor")
    page.get_by_role("button", name="Log out", exact=True).click()
    fill_in(page, User_name="alice", Password=OLD)
    page.get_by_role("button", name="Log in").click()
    code = page.get_by_label("Code of your authenticator")
    expect(code).to_be_focused()
    shown(page, "code")
    code.fill("000000")
    page.keyboard.press("Enter")
    expect(page.locator("#faults-code")).to_contain_text("not valid")
    code.fill(recovery)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Log out", exact=True)).to_be_visible()


@pytest.mark.nightly("browser")
def test_a_required_factor_is_set_up_at_the_log_in(
    page: Page, web: str, settings: Settings
) -> None:
    settings.SECOND_FACTOR = "required"
    apart(_account)
    page.goto("/account/")
    fill_in(page, User_name="alice", Password=OLD)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Set up second factor")).to_be_visible()
    shown(page, "required")
    page.get_by_role("textbox", name="Code").fill(code_of(page))
    page.get_by_role("button", name="Log in").click()
    expect(page.locator(".recovery-codes code")).to_have_count(10)
    shown(page, "required-codes")
    page.get_by_role("link", name="Continue").click()
    expect(page.get_by_text("this session")).to_be_visible()
    assert page.url.endswith("/account/")
