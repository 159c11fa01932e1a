"""The form of a request: what plans reach is shown, chosen by keyboard, and fits a phone."""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from controlplane.models import Proposal
from controlplane.planners.placement.trade import compute_trade
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.execution import scattered
from tests.support.watching import reachable

pytestmark = pytest.mark.django_db(transaction=True)


def prepared() -> None:
    """Scatter queries on streams of unlike rates, and compute what plans reach."""
    by = made.actor("operator")
    cluster = scattered(by, made.small_cluster(by), 40)
    reachable(cluster, 1.2)
    compute_trade(cluster.pk)


def test_a_point_is_chosen_by_keyboard_and_requested(page: Page, web: str) -> None:
    apart(prepared, 120)
    log_in(page, web, "operator")
    page.goto("/clusters/sf/proposals/#request")
    points = page.locator("#trade input[name=imbalance]")
    expect(points).to_have_count(4)
    expect(points.nth(3)).to_be_disabled()
    points.nth(0).focus()
    page.keyboard.press("ArrowDown")
    expect(points.nth(1)).to_be_checked()
    folder = os.environ.get("WEIR_PICTURES")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (1280, 400):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, (theme, width)
            if folder:
                page.screenshot(path=Path(folder) / f"trade-{theme}-{width}.png", full_page=True)
    page.get_by_role("button", name="Compute a proposal").click()
    page.wait_for_url("**/proposals/*/")
    assert apart(lambda: Proposal.objects.get().parameters["imbalance"]) == 0.1
