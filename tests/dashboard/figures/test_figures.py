"""Every figure is one that Plotly accepts, and says which data a live update replaces."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard.figures.cluster import ChartLimits, cluster_figures
from dashboard.figures.parts import Figure, PlanMark
from dashboard.figures.results import DrawnPoint, results_figure

MARKS = [PlanMark(1500, "◆ 3", "Proposal 3 took effect", "/clusters/sf/proposals/3/")]
LIMITS = ChartLimits(latency_ms=2000.0, imbalance=0.2, reachable=1.31)


def coloured(figure: Any) -> Any:
    """Return the figure with a colour for every design token, as theme.js does it."""
    if isinstance(figure, dict):
        return {name: coloured(part) for name, part in figure.items()}
    if isinstance(figure, list):
        return [coloured(part) for part in figure]
    return "#123456" if isinstance(figure, str) and figure.startswith("--") else figure


LINES = {
    "s1": [DrawnPoint(0, None), DrawnPoint(60_000, 1000.0)],
    "s2": [DrawnPoint(60_000, 3, "an estimate")],
}


def cluster_figure(name: str) -> Figure:
    return cluster_figures(LIMITS, MARKS)[name]


LIVE = ("imbalance", "replication", "latency", "rates")
MADE: dict[str, Callable[[], Figure]] = {
    **{name: partial(cluster_figure, name) for name in LIVE},
    "results": lambda: results_figure(LINES),
}


@pytest.mark.parametrize("name", MADE)
def test_plotly_accepts_the_figure(name: str) -> None:
    """A misspelt property raises here instead of being ignored in the browser."""
    figure = coloured(MADE[name]())
    assert go.Figure(data=figure["data"], layout=figure["layout"]).data


@pytest.mark.parametrize("name", MADE)
def test_a_figure_is_plain_json(name: str) -> None:
    """It travels as JSON; NaN would break the browser's parser."""
    assert json.dumps(MADE[name](), allow_nan=False)


@pytest.mark.parametrize("name", LIVE)
def test_a_chart_without_limits_and_plans_is_accepted(name: str) -> None:
    """A cluster without a bound of replication, as a new one."""
    figure = coloured(cluster_figures(ChartLimits(), [])[name])
    assert go.Figure(data=figure["data"], layout=figure["layout"]).data


@pytest.mark.parametrize(
    ("name", "levels"),
    [("latency", [2.0]), ("imbalance", [0.2]), ("replication", [1.31]), ("rates", [])],
)
def test_limits_of_the_policy_are_drawn(name: str, levels: list[float]) -> None:
    """In the units of the axis: latency in seconds."""
    layout = MADE[name]()["layout"]
    lines = [shape for shape in layout["shapes"] if shape["type"] == "line"]
    assert [line["y0"] for line in lines] == pytest.approx(levels)
    assert layout["meta"]["levels"] == pytest.approx(levels)
    assert all(line["label"]["text"] for line in lines)


def test_a_missing_value_breaks_the_line() -> None:
    """An invented value between two measured ones would be a lie."""
    for name in LIVE:
        lines = [trace for trace in MADE[name]()["data"] if "field" in trace["meta"]]
        assert all(line["connectgaps"] is False for line in lines)


def test_a_plan_is_marked_over_the_whole_height() -> None:
    marks = MADE["rates"]()["data"][-1]
    assert (marks["x"], marks["text"]) == ([1500], ["◆ 3"])
    assert marks["error_y"]["arrayminus"] == [1.0]


def test_results_are_drawn_as_one_line_per_key() -> None:
    """A window without a value breaks its key's line."""
    first, second = MADE["results"]()["data"]
    assert (first["name"], first["y"], first["connectgaps"]) == ("s1", [None, 1000.0], False)
    assert (second["name"], second["x"], second["y"]) == ("s2", [60_000], [3])
    assert first["line"] != second["line"]
