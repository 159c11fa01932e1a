"""The scenario of each planner on a whole Weir, as `make run` starts it.

`WEIR_SCENARIO_RUNS` runs each so many times and prints how many of them
end with the alert gone and the promised gain measured; nine of ten must.
"""

import os
import time
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Page

from controlplane.clusters.scenarios import KINDS, ScenarioKind
from tests.end_to_end.policy_changes import change_policy
from tests.end_to_end.scenario_play import (
    AS_BEFORE,
    QUICK,
    approved,
    firing,
    is_measured,
    keeps_its_promise,
    play,
    ready,
    settle,
    until,
)
from tests.support.running_weir import RunningWeir

pytestmark = [
    pytest.mark.browser,
    pytest.mark.spark,
    pytest.mark.nightly("scenarios"),
    pytest.mark.timeout(0),
]

# Each state of a run has its own patience.
RUNS: Final = int(os.environ.get("WEIR_SCENARIO_RUNS", "1"))
OF_PLANNERS: Final = [kind for kind in KINDS.values() if kind.planner]
# The first one is that of a fresh demonstration.
ALERTS: Final = [
    "replication_factor",
    *(subject for each in OF_PLANNERS for subject in each.alerts),
]


@pytest.fixture(scope="module")
def weir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeir]:
    """Weir as `make run` starts it, with the rates for which its scenarios are made."""
    running = RunningWeir(tmp_path_factory.mktemp("weir") / "data", {})
    running.start()
    yield running
    running.end()
    assert running.processes() == []


@pytest.fixture(scope="module")
def quick(weir: RunningWeir) -> Iterator[None]:
    """Shorten the hold time of alerts and the cool-down of the watch loops."""
    change_policy(weir, **QUICK)
    yield
    change_policy(weir, **AS_BEFORE)


@pytest.mark.usefixtures("quick")
def test_the_tour_ends_the_first_alarm_of_the_demonstration(page: Page) -> None:
    """Each step by the tour's own button; what the plan promises ends the alert."""
    tour = page.locator("#tour")
    page.goto("/clusters/sf/")
    page.get_by_role("button", name="Start tour").click()
    until(page, lambda: firing(page))
    begun = time.monotonic()
    page.goto("/clusters/sf/")
    tour.get_by_role("link", name="Open the explanation").click()
    page.get_by_role("complementary", name="Explain").locator(".cause").wait_for()
    until(page, lambda: ready(page))
    page.goto("/clusters/sf/")
    tour.get_by_role("link", name="Read a proposal").click()
    page.get_by_role("heading", level=1).wait_for()
    # Whoever stays on the page of the proposal until its plan is executed sees the effect there.
    page.goto("/clusters/sf/")
    tour.get_by_text("Approve the proposal").first.wait_for()
    until(page, lambda: approved(page, "placement"))
    tour.get_by_role("link", name="See the effect").click()
    page.get_by_role("heading", level=1).wait_for()
    page.goto("/clusters/sf/")
    tour.get_by_text("Tour complete").wait_for()
    until(page, lambda: firing(page), lambda found: "replication_factor" not in found)
    print("first alarm solved in", round(time.monotonic() - begun), "s")  # noqa: T201 - the figure


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", [pytest.param(kind, id=kind.name) for kind in OF_PLANNERS])
def test_the_recommended_plan_ends_the_alert_and_keeps_its_promise(
    page: Page, kind: ScenarioKind
) -> None:
    page.goto("/")
    until(page, lambda: is_measured(page))
    kept = []
    for _ in range(RUNS):
        # A scenario is sized by the rates of the last minute, which must be after the one before.
        page.wait_for_timeout(120_000)
        settle(page, ALERTS)
        entry = play(page, kind)
        kept.append(keeps_its_promise(kind, entry))
        print(kind.name, sum(kept), "of", len(kept), entry["assessment"])  # noqa: T201 - the figure
    assert sum(kept) >= RUNS - RUNS // 10, kept
