"""A scenario by day, on the shared Weir: uneven queries, and the plan of moves that helps."""

import pytest
from playwright.sync_api import Page

from controlplane.clusters.scenarios import KINDS
from tests.end_to_end.policy_changes import change_policy
from tests.end_to_end.scenario_play import AS_BEFORE, QUICK, is_measured, play, until
from tests.support.running_weir import RunningWeir

pytestmark = [pytest.mark.browser, pytest.mark.spark, pytest.mark.timeout(1800)]


def test_the_recommended_plan_helps_against_the_alert_of_uneven_queries(
    weir: RunningWeir, page: Page
) -> None:
    change_policy(weir, **QUICK)
    try:
        page.goto("/")
        until(page, lambda: is_measured(page))
        entry = play(page, KINDS["uneven_queries"], to_calm=False)
    finally:
        change_policy(weir, **AS_BEFORE)
    effects = {row["measure"]: row for row in entry["assessment"]}
    assert entry["planner"] == "placement"
    assert effects["imbalance"]["effect"] == "helped"
