"""The charts of a node: the load without the last plan, with its interval."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from dashboard.figures.node import FIGURES, NodeLimits, WithoutPlan, node_figures
from tests.support.series import grid_of_samples

BEGIN = datetime(2026, 1, 5, 10, tzinfo=UTC)
ENDS = (BEGIN, BEGIN + timedelta(minutes=1))
LIMITS = NodeLimits(500.0, 500.0, 10_000.0)
# A minute of samples of two nodes, the first with 200 records/s.
SAMPLE = {
    "loads": [200.0, 300.0], "node_waiting": [0, 0], "node_p95": [90.0, 80.0],
    "node_state": [1, 2], "p95": 90.0, "arrived": 5.0, "in": 5.0,
}  # fmt: skip
BEGIN_MS = round(1000 * BEGIN.timestamp())
SERIES = grid_of_samples(FIGURES, [SAMPLE | {"t": BEGIN_MS + 1000 * s} for s in range(60)])
POINTS = [(round(1000 * (BEGIN + timedelta(seconds=s)).timestamp()), 700.0) for s in (0, 10, 20)]
WITHOUT = WithoutPlan(12, POINTS, 30.0)


def load_chart(without: WithoutPlan | None) -> Any:
    return node_figures(SERIES, 0, LIMITS, [], ENDS, np.zeros(60, bool), without)["load"]


def test_the_load_without_the_plan_is_dashed_with_its_interval() -> None:
    chart = load_chart(WITHOUT)
    lines = {trace["name"]: trace for trace in chart["data"]}
    line = lines["without proposal 12"]
    assert (line["y"], line["line"]["dash"]) == ([700.0] * 3, "dash")
    assert lines["without proposal 12, interval, low"]["y"] == [670.0] * 3
    assert lines["without proposal 12, interval"]["y"] == [730.0] * 3
    assert chart["layout"]["yaxis"]["range"][1] > 700
    assert "without proposal 12 700 deliveries/s" in chart["layout"]["meta"]["finding"]
    texts = [label["text"] for label in chart["layout"]["annotations"]]
    assert texts == ["load", "limit 500 deliveries/s", "without 12"]


def test_the_highest_value_of_each_line_is_in_the_picture() -> None:
    series = grid_of_samples(FIGURES, [SAMPLE | {"t": BEGIN_MS, "p95": 60_000.0}])
    chart = node_figures(series, 0, LIMITS, [], ENDS, np.zeros(1, bool))["latency"]
    assert chart["layout"]["yaxis"]["range"][1] > 60


def test_a_batch_of_records_that_waited_does_not_set_the_scale() -> None:
    """It has a mark; where there is nothing else, it is in the picture."""
    first = SAMPLE | {"t": BEGIN_MS - 1000, "node_p95": [90_000.0, 80.0]}
    samples = [first, *({"t": BEGIN_MS + 1000 * s} | SAMPLE for s in range(60))]
    for count, top, marks in ((1, 90.0, []), (61, 10.0, [BEGIN_MS - 1000])):
        series = grid_of_samples(FIGURES, samples[:count])
        waited = series.times < BEGIN.timestamp()
        chart = node_figures(series, 0, LIMITS, [], ENDS, waited)["latency"]
        assert chart["layout"]["yaxis"]["range"][1] == pytest.approx(1.15 * top)
        assert chart["data"][-1]["x"] == marks


def test_without_a_plan_or_an_interval_less_is_drawn() -> None:
    drawn = ["micro-batches", "load", "plans"]
    assert [trace["name"] for trace in load_chart(None)["data"]] == drawn
    names = [trace["name"] for trace in load_chart(replace(WITHOUT, interval=None))["data"]]
    assert names == [*drawn, "without proposal 12"]
    assert load_chart(replace(WITHOUT, points=[]))["data"][-1]["name"] == "plans"
