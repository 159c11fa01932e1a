"""The form of a request: what plans reach is shown, chosen by keyboard, and fits a phone."""

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from controlplane.connections import redis_client
from controlplane.models import Proposal
from controlplane.planners.placement.trade import Trade, TradePoint
from controlplane.wire import keys
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.execution import scattered

pytestmark = pytest.mark.django_db(transaction=True)


def prepared() -> None:
    """Keep a trade of a cluster whose plans need more moves for less imbalance."""
    by = made.actor("operator")
    cluster = scattered(by, made.small_cluster(by))
    rows: list[tuple[Any, ...]] = [
        (0.05, True, False, 180, 1.92, 0.05, 0.7, 90_000, 600, 80.0),
        (0.1, True, True, 131, 1.69, 0.1, 0.75, 75_000, 600, 55.0),
        (0.2, True, True, 96, 1.61, 0.18, 0.8, 60_000, 600, 40.0),
        (0.4, False, True, 60, 1.5, 0.33, 0.95, 40_000, 600, 30.0),
    ]
    trade = Trade(
        round(time.time() * 1000), 2.4, 302, 1.7, [(0, 2.1), (34, 1.92), (70, 1.75), (96, 1.61)],
        [TradePoint(*row) for row in rows],
    )  # fmt: skip
    redis_client().set(keys.trade_key(cluster.slug), json.dumps(asdict(trade)))


def test_a_point_is_chosen_by_keyboard_and_requested(page: Page, web: str) -> None:
    apart(prepared, 120)
    log_in(page, web, "a-operator")
    page.goto("/clusters/sf/proposals/#request")
    points = page.locator("#trade input[name=slack]")
    expect(points.first).to_be_visible()
    expect(page.locator("#trade input[value='0.4']")).to_be_disabled()
    expect(points.nth(2)).to_be_checked()
    points.nth(2).focus()
    page.keyboard.press("ArrowUp")
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
    page.locator("#request").get_by_role("button", name="Request plan").click()
    page.wait_for_url("**/proposals/*/")
    assert apart(lambda: Proposal.objects.get().parameters["imbalance"]) == 0.1
