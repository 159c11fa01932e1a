"""The cause of an exceeded limit: at most two clicks from the fleet to a panel that names it.

Each scenario really happens in the pipeline of the Weir that the files of this folder share.
"""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.end_to_end.mixed_plan import post, read
from tests.end_to_end.policy_changes import change_policy
from tests.support.running_weir import RunningWeir

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("overload"),
]

PATIENCE_S = 180
# Every latency is above it: which limit is exceeded is not what these tests are about.
LATENCY_MS = 100
CASES = [
    pytest.param("slow_node", {"node": 0}, ["slow_node"], "processor time per record", id="slow"),
    pytest.param("node_lost", {"node": 1}, ["node_stalled"], "processes no records", id="lost"),
    pytest.param("hot_key", {}, ["hot_key"], "(query by-car) has", id="hot-key"),
    pytest.param("rush_hour", {}, ["streams_rose"], "streams rose", id="rush-hour"),
]


@pytest.fixture(scope="module")
def low_limit(weir: RunningWeir) -> Iterator[None]:
    """Lower the limit of the latency and the hold time of alerts."""
    change_policy(weir, latency_ms=LATENCY_MS, alert_hold_s=1)
    yield
    change_policy(weir, latency_ms=10_000, alert_hold_s=60)


def wait_for_cause(page: Page, codes: list[str]) -> str:
    """Wait until the explanation of the latency has a cause of one of these codes; return it."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        cause = read(page, "explanations/measure:latency_p95")["cause"]
        if cause is not None and cause["code"] in codes:
            return str(cause["code"])
        assert time.monotonic() < deadline, cause
        page.wait_for_timeout(1000)


@pytest.mark.usefixtures("low_limit")
@pytest.mark.parametrize(("kind", "body", "codes", "text"), CASES)
def test_the_cause_is_two_clicks_from_the_fleet(
    page: Page, kind: str, body: dict[str, int], codes: list[str], text: str
) -> None:
    """The panel names it; the time strip shows the scenario; its end is in the audit log."""
    page.goto("/")
    row = post(page, f"scenarios/{kind}", {"minutes": 10, **body})
    try:
        wait_for_cause(page, codes)
        page.goto("/")
        page.get_by_role("link", name="Explain", exact=True).first.click()
        panel = page.get_by_role("complementary", name="Explain")
        expect(panel).to_contain_text(text)
        expect(page.locator("#strip")).to_contain_text("⚑")
    finally:
        post(page, f"scenarios/{row['id']}/end", {})
    page.goto("/audit/?action=scenario.end")
    expect(page.locator("main")).to_contain_text(f"sf/{kind}")
