"""The charts of the skew of keys: lines, limits, changes of the grouping, and their finding."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard.figures.keys import skew_figures
from dashboard.figures.parts import Figure
from tests.dashboard.figures.test_figures import coloured
from tests.support.key_reports import history

NOW = datetime(2026, 11, 24, 9, tzinfo=UTC)
TITLES = {"partial_key": "partial key"}


def figures(**changed: Any) -> dict[str, Figure]:
    given: dict[str, Any] = {"holds": 0.4, "unit": "node", "limit": 0.2} | changed
    return skew_figures(history(NOW), TITLES, **given)


@pytest.mark.parametrize("name", ["skew", "imbalance"])
def test_plotly_accepts_the_figures_as_json(name: str) -> None:
    empty = skew_figures([], {}, holds=None, unit="task", limit=0.2)
    for made in (figures(), figures(holds=None, limit=0.0), empty):
        json.dumps(made, allow_nan=False)
        figure = coloured(made[name])
        assert go.Figure(data=figure["data"], layout=figure["layout"]).layout.meta["finding"]


def test_a_change_of_the_grouping_is_marked_once() -> None:
    figure = figures()["skew"]
    lines = [shape for shape in figure["layout"]["shapes"] if shape.get("yref") == "paper"]
    texts = [label["text"] for label in figure["layout"]["annotations"]]
    assert [shape["x0"] for shape in lines] == [round(history(NOW)[120].time.timestamp() * 1000)]
    assert texts.count("partial key") == 1


def test_the_share_that_a_node_holds_is_drawn_if_it_is_a_share() -> None:
    def levels(**changed: Any) -> list[float]:
        shapes = figures(**changed)["skew"]["layout"]["shapes"]
        return [shape["y0"] for shape in shapes if shape.get("xref") == "paper"]

    assert (levels(), levels(holds=1.7), levels(holds=None)) == ([0.4], [], [])


def test_the_limit_of_the_imbalance_is_within_the_axis() -> None:
    layout = figures()["imbalance"]["layout"]
    limit, forbidden = (shape for shape in layout["shapes"] if shape.get("xref") == "paper")
    top = layout["yaxis"]["range"][1]
    assert (limit["y0"], forbidden["y0"], forbidden["y1"]) == (20.0, 20.0, top)
    assert top > 20.0


def test_a_single_point_is_visible() -> None:
    figure = skew_figures(history(NOW)[:1], {}, holds=None, unit="node", limit=0.2)["skew"]
    first, last = figure["layout"]["xaxis"]["range"]
    assert last - first == 300_000
    assert "markers" in figure["data"][0]["mode"]


def test_a_gap_in_the_history_breaks_the_lines() -> None:
    points = history(NOW)[:20] + [
        point
        for point in history(NOW + timedelta(hours=3))
        if point.time > NOW + timedelta(hours=2)
    ]
    figure = skew_figures(points, {}, holds=None, unit="node", limit=0.2)["imbalance"]
    assert figure["data"][0]["y"].count(None) == 2
