"""The cause of an exceeded limit: every page names it, and two clicks from the fleet explain it.

Each scenario really happens in the pipeline of the Weir that the files of this folder share.
"""

import re
import time
from collections.abc import Iterator, Sequence
from typing import Any

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

PATIENCE_S = 240
# A cluster that fills in its first minutes has no time before to compare with.
FILLED_S = 300
AGE = "SELECT strftime('%s', 'now') - strftime('%s', created_at) FROM controlplane_cluster"
# Every latency is above it: which limit is exceeded is not what these tests are about.
LATENCY_MS = 100
SLOW = ("slow_node", {"node": 0})
RUSH: tuple[str, dict[str, int]] = ("rush_hour", {})
# Scenarios with the causes of which all must be named: code, and the field with its subject.
CASES = [
    pytest.param([SLOW], {"slow_node": ("node", 0)}, id="slow"),
    pytest.param([("node_lost", {"node": 1})], {"node_stalled": ("node", 1)}, id="lost"),
    pytest.param([("hot_key", {})], {"hot_key": ("query_name", "by-car")}, id="hot-key"),
    pytest.param(
        [RUSH, SLOW], {"streams_rose": ("node", None), "slow_node": ("node", 0)}, id="two-at-once"
    ),
    # After it: half an hour with two rush hours has no single rise.
    pytest.param([RUSH], {"streams_rose": ("node", None)}, id="rush-hour"),
]
# Pairs of all records of twenty minutes of event time, computed again with every batch.
PAIRS = {
    "on": [["car % 2", "car % 2"]], "aggregates": {"pairs": "count(*)"}, "window_s": 1200,
}  # fmt: skip


@pytest.fixture(scope="module")
def low_limit(weir: RunningWeir) -> Iterator[None]:
    """Lower the limit of the latency and the hold time of alerts of a cluster that is not new."""
    time.sleep(max(0, FILLED_S - weir.stored(AGE)))
    change_policy(weir, latency_ms=LATENCY_MS, alert_hold_s=1)
    yield
    change_policy(weir, latency_ms=10_000, alert_hold_s=60)


def wait_for_causes(page: Page, codes: Sequence[str]) -> list[dict[str, Any]]:
    """Wait until the explanation of the latency names all these codes; return the causes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        ranked = read(page, "explanations/measure:latency_p95")["ranked"]
        named = {row["cause"]["code"] for row in ranked[: len(codes)]}
        if named >= set(codes):
            return [row["cause"] for row in ranked[: len(codes)]]
        assert time.monotonic() < deadline, [row["text"] for row in ranked]
        page.wait_for_timeout(1000)


def firing_alert(page: Page) -> int:
    """Wait until the alert of the latency fires; return its id."""
    deadline = time.monotonic() + PATIENCE_S
    address = "/api/v1/alerts?cluster=sf&state=firing&subject=latency_p95"
    while not (rows := page.request.get(address).json()["alerts"]):
        assert time.monotonic() < deadline
        page.wait_for_timeout(1000)
    return int(rows[0]["id"])


def check_pages(page: Page, node: int, codes: Sequence[str]) -> None:
    """Require that the headlines of all pages about a node name causes with these codes."""
    rows = read(page, f"queries?node={node}&limit=1000")["queries"]
    # Those of trips end meanwhile.
    query = next(row["id"] for row in rows if not row["name"].startswith("trip-"))
    pages = {
        "alert": f"/clusters/sf/alerts/{firing_alert(page)}/",
        "fleet": "/",
        "cluster": "/clusters/sf/",
        "node": f"/clusters/sf/nodes/{node}/",
        "query": f"/clusters/sf/queries/{query}/",
    }
    for name, address in pages.items():
        page.goto(address)
        named = page.locator("main [data-causes]").first
        for code in codes:
            expect(named, name).to_have_attribute("data-causes", re.compile(code), timeout=60_000)


@pytest.mark.usefixtures("low_limit")
@pytest.mark.parametrize(("scenarios", "causes"), CASES)
def test_every_page_names_the_cause(
    page: Page, scenarios: Sequence[tuple[str, Any]], causes: dict[str, tuple[str, Any]]
) -> None:
    """The panel explains it; the time strip shows the scenario; its end is in the audit log."""
    page.goto("/")
    rows = [
        post(page, f"scenarios/{kind}", {"minutes": 12, **body}) for kind, body in scenarios
    ]  # fmt: skip
    try:
        for cause in wait_for_causes(page, list(causes)):
            field, subject = causes[cause["code"]]
            assert cause[field] == subject
        node = next((c["node"] for c in wait_for_causes(page, list(causes)) if c["node"]), 0)
        check_pages(page, node, list(causes))
        page.goto("/")
        page.get_by_role("link", name="Explain", exact=True).first.click()
        panel = page.get_by_role("complementary", name="Explain")
        expect(panel.locator(".cause")).to_be_visible()
        expect(page.locator("#strip")).to_contain_text("⚑")
    finally:
        for row in rows:
            post(page, f"scenarios/{row['id']}/end", {})
    page.goto("/audit/?action=scenario.end")
    expect(page.locator("main")).to_contain_text(f"sf/{scenarios[0][0]}")


@pytest.mark.usefixtures("low_limit")
def test_an_expensive_query_is_named(page: Page) -> None:
    """A join of everything with everything, on one node."""
    page.goto("/")
    rows = read(page, "streams?limit=1000")["streams"]
    names = [row["name"] for row in sorted(rows, key=lambda row: -row["rate"])[:60]]
    text = {**PAIRS, "right": names[1::2]}
    post(page, "queries", {"name": "all-pairs", "streams": names[::2], "text": text})
    try:
        codes = ["expensive_query|queries_placed"]
        deadline = time.monotonic() + PATIENCE_S
        while True:
            ranked = read(page, "explanations/measure:latency_p95")["ranked"]
            if ranked and ranked[0]["cause"]["query_name"] == "all-pairs":
                break
            assert time.monotonic() < deadline, [row["text"] for row in ranked]
            page.wait_for_timeout(1000)
        check_pages(page, ranked[0]["cause"]["node"], codes)
    finally:
        post(page, "queries/end", {"names": ["all-pairs"]})
