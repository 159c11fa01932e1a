"""An overload by the pages alone: arm a ladder, shed, keep everything again, activate, disarm.

The records are those of the demonstration, three times as many in its rush hour; the nodes are
limited to half more than their present load, so that the rush hour is twice what they can process.
"""

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.end_to_end.mixed_plan import post, read
from tests.end_to_end.policy_changes import change_policy
from tests.support.running_weir import RunningWeir

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("overload"),
]

PATIENCE_S = 180
# Of the present load of the fullest node.
ROOM = 1.5
SHEDDING = "/clusters/sf/shedding/"


@pytest.fixture
def limited(weir: RunningWeir, page: Page) -> Iterator[None]:
    """Limit the nodes to half more than the load of the fullest one; drop soon, stop soon."""
    page.goto("/")
    usual = read(page, "policy")
    change_policy(weir, shedding_hold_s=5)
    nodes = read(page, "nodes")
    loads = until(page, lambda: [mean_load(page, node["index"]) for node in nodes], all)
    capacity = round(ROOM * max(loads), 1)
    for node in nodes:
        body = {"capacity": capacity, "emulated": True, "reason": "a test of overloads"}
        post(page, f"nodes/{node['index']}", body, "patch")
    yield
    if read(page, "shedding")["armed"]:
        post(page, "shedding/disarm", {"reason": "the test is over"})
    for node in nodes:
        body = {key: node[key] for key in ("capacity", "emulated")}
        post(page, f"nodes/{node['index']}", body, "patch")
    change_policy(weir, shedding_hold_s=usual["shedding_hold_s"])


def mean_load(page: Page, node: int) -> Any:
    """Return the records/s of a node in the last minute, None if they are not known."""
    return read(page, f"explanations/node:{node}")["finding"]["value"]


def until(page: Page, find: Callable[[], Any], reached: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not reached(found := find()):
        assert time.monotonic() < deadline, found
        page.wait_for_timeout(1000)
    return found


def open_page(page: Page, path: str) -> None:
    page.goto(path)
    page.locator("body[data-ready]").wait_for(state="attached")


def confirm(dialog: Locator, button: str, reason: str) -> None:
    """Give the reason in an open dialog, and press its button."""
    dialog.get_by_label("Reason").fill(reason)
    dialog.get_by_role("button", name=button).click()


@pytest.mark.usefixtures("limited")
def test_an_overload_is_shed_and_everything_is_kept_again(page: Page) -> None:
    status = page.locator("#shedding-status")
    open_page(page, SHEDDING)
    page.get_by_role("button", name="Enable shedding plan…").click()
    confirm(page.locator("#arm"), "Enable shedding plan", "the rush hour begins")
    message = page.locator(".message")
    expect(message).to_contain_text("is enabled from the next batch on", timeout=60_000)
    expect(status).to_contain_text("nothing is dropped", timeout=60_000)

    begin_rush_hour(page)
    open_page(page, SHEDDING)
    expect(status).to_contain_text(re.compile(r"Drop level \d+ of \d+ is active"), timeout=180_000)
    expect(page.locator("#shedding-kept td[data-grade=warn]").first).to_be_visible(timeout=60_000)
    newest = page.locator("#shedding-history tbody tr").first
    expect(newest).to_contain_text("so far", timeout=60_000)
    dropped = read(page, "shedding")
    assert dropped["position"] > 0, dropped

    open_page(page, "/clusters/sf/")
    page.get_by_role("button", name="End scenario").click()
    open_page(page, SHEDDING)
    expect(status).to_contain_text("nothing is dropped", timeout=180_000)
    assert read(page, "shedding")["position"] == 0

    run_drill(page)
    activate_and_release(page)
    open_page(page, SHEDDING)
    page.get_by_role("button", name="Disable…").click()
    confirm(page.locator("#disarm"), "Disable shedding plan", "the rush hour is over")
    expect(page.locator(".message")).to_contain_text("No shedding plan is enabled", timeout=60_000)
    expect(status).to_contain_text("Not enabled", timeout=60_000)


def begin_rush_hour(page: Page) -> None:
    open_page(page, "/clusters/sf/")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("button", name="Start scenario…").click()
    dialog = page.locator("#scenario")
    dialog.get_by_label("Rush hour").check()
    dialog.get_by_role("button", name="Start scenario").click()
    expect(page.locator("section.scenarios")).to_contain_text("Rush hour", timeout=60_000)


def run_drill(page: Page) -> None:
    """The drill over the last hours shows the overload that has just ended."""
    page.get_by_role("button", name="Run drill").click()
    expect(page.locator("#drill")).to_contain_text("Time above capacity", timeout=60_000)
    chart = page.locator('[data-figure="drill"] .scatterlayer')
    expect(chart).to_have_count(1, timeout=60_000)


def activate_and_release(page: Page) -> None:
    """A rung drops although the load is small, until it is released."""
    status = page.locator("#shedding-status")
    page.locator("#ladder").get_by_role("button", name="Activate").first.click()
    dialog = page.locator(".dialog:popover-open")
    dialog.get_by_label("For").select_option("5 minutes")
    confirm(dialog, "Activate drop level 1", "a rehearsal")
    message = page.locator(".message")
    expect(message).to_contain_text("Drop level 1 is active until", timeout=60_000)
    expect(status).to_contain_text("Drop level 1 of", timeout=60_000)
    page.get_by_role("button", name="Release drop level 1").click()
    expect(message).to_contain_text("No drop level is activated", timeout=60_000)
    expect(status).to_contain_text("nothing is dropped", timeout=60_000)
