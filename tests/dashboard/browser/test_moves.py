"""Chosen queries are moved by a proposal; a chart of a stream has a table."""

import re

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from controlplane.models import Cluster, Proposal, Query
from controlplane.telemetry import series
from tests.dashboard.browser.conftest import apart, log_in
from tests.support import cluster as made
from tests.support.admission import arrived

pytestmark = [pytest.mark.browser, pytest.mark.nightly("browser")]


def _cluster() -> int:
    """Create queries a and b, and rates; return the id of their stream."""
    by = made.actor("operator")
    cluster = made.small_cluster(by)
    made.placed(by, cluster, {"a": ["s0"], "b": ["s0"]})
    arrived(cluster, timezone.now(), {"s0": [50.0] * 60})
    series.roll_up(timezone.now())
    return cluster.streams.get(name="s0").pk


def _target() -> int:
    """Return the index of a node that runs no query."""
    used = set(Query.objects.values_list("tasks__node__index", flat=True))
    indices = Cluster.objects.get().nodes.values_list("index", flat=True)
    return next(index for index in indices if index not in used)


def test_selected_queries_become_a_plan(page: Page, web: str) -> None:
    apart(_cluster)
    log_in(page, web, "a-operator")
    target = apart(_target)
    page.goto("/clusters/sf/queries/")
    page.locator("body[data-ready]").wait_for(state="attached")
    for name in "ab":
        page.get_by_label(f"Select {name}", exact=True).check()
    page.get_by_role("button", name="Move…").click()
    dialog = page.locator("#move-many")
    expect(dialog).to_contain_text("The selected queries (2)")
    dialog.get_by_label("To node").select_option(str(target))
    dialog.get_by_label("Reason").fill("the node is idle")
    dialog.get_by_role("button", name="Request plan").click()
    expect(page).to_have_url(re.compile(r"/clusters/sf/proposals/\d+/"))
    expect(page.locator("main")).to_contain_text("Move chosen queries")
    planned = apart(lambda: Proposal.objects.get().parameters)
    assert (len(planned["queries"]), planned["node"]) == (2, target)


def test_the_lag_of_a_stream_has_a_table(page: Page, web: str) -> None:
    pk = apart(_cluster)
    log_in(page, web, "a-operator")
    page.goto(f"/clusters/sf/streams/{pk}/")
    page.locator("body[data-ready]").wait_for(state="attached")
    expect(page.locator('[data-figure="lag"].js-plotly-plot')).to_be_visible()
    table = page.get_by_role("region", name="Lag as a table")
    expect(table).to_be_hidden()
    page.get_by_role("button", name="Show Lag as a table").click()
    expect(table.locator("tbody tr").first).to_contain_text("0")
    page.get_by_role("button", name="Show Rate and forecast as a table").click()
    expect(page.get_by_role("region", name="Rate and forecast as a table")).to_be_visible()
