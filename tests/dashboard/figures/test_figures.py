"""Every figure is one that Plotly accepts, and says which data a live update replaces."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard.figures.cluster import FULL_SCALE, LOAD_SCALE, NodeSeries, cluster_figures
from dashboard.figures.parts import Figure, VersionMark
from dashboard.figures.proposal import proposal_figures
from dashboard.figures.results import results_figure
from tests.dashboard.conftest import sample

NODES = [NodeSeries(0, "node 0", 500.0), NodeSeries(1, "node 1", 250.0)]
MARKS = [VersionMark(1500, 7, "Proposal 3: 2 queries moved", 3), VersionMark(1700, 8, "Placed 1")]
SAMPLES = [sample(1000, loads=[250.0, 300.0]), sample(2000, loads=[100.0, 50.0], rf=None)]


def coloured(figure: Any) -> Any:
    """Return the figure with a colour for every design token, as theme.js does it."""
    if isinstance(figure, dict):
        return {name: coloured(part) for name, part in figure.items()}
    if isinstance(figure, list):
        return [coloured(part) for part in figure]
    return "#123456" if isinstance(figure, str) and figure.startswith("--") else figure


LINES: dict[str, list[tuple[int, Any]]] = {"s1": [(0, None), (60_000, 1000.0)], "s2": [(60_000, 3)]}


def cluster_figure(name: str) -> Figure:
    return cluster_figures(SAMPLES, NODES, MARKS)[name]


LIVE = ("heat", "bars", "imbalance", "replication", "latency", "rates")
MADE: dict[str, Callable[[], Figure]] = {
    **{name: partial(cluster_figure, name) for name in LIVE},
    "proposal": lambda: proposal_figures(["a"], {"rates": [1.0]}, {"rates": [2.0]})["rates"],
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
def test_a_cluster_without_samples_has_its_charts(name: str) -> None:
    """The first sample of a new cluster must find them."""
    figure = coloured(cluster_figures([], NODES, [])[name])
    assert go.Figure(data=figure["data"], layout=figure["layout"]).data


def test_heat_is_load_over_capacity() -> None:
    """Nodes differ in capacity: the same load fills them differently."""
    heat = MADE["heat"]()["data"][0]
    assert heat["z"] == [[0.5, 0.2], [1.2, 0.2]]


def test_the_load_scale_turns_where_the_grades_do() -> None:
    """Colour means good or bad: the hue changes at 80 % and 100 % of capacity."""
    too_much = next(float(str(stop)) for stop, color in LOAD_SCALE if color == "--load-4")
    assert too_much * FULL_SCALE == pytest.approx(1)


def test_the_replication_factor_is_drawn_with_its_bound() -> None:
    """A ratio says nothing without the 1 that no placement undercuts."""
    assert MADE["replication"]()["layout"]["shapes"][0]["y0"] == 1.0


def test_a_missing_value_breaks_the_line() -> None:
    """An invented value between two measured ones would be a lie."""
    line = MADE["replication"]()["data"][0]
    assert line["y"][1] is None
    assert line["connectgaps"] is False


def test_a_version_of_a_proposal_is_marked_over_the_whole_height() -> None:
    """Small online placements are many and get a short tick only."""
    *_, marks, labels = MADE["rates"]()["data"]
    assert marks["x"] == [1500, 1700]
    assert (labels["x"], labels["text"]) == ([1500], ["v7"])
    assert marks["error_y"]["arrayminus"][0] == 1.0 > marks["error_y"]["arrayminus"][1]


def test_results_are_drawn_as_one_line_per_key() -> None:
    """A window without a value breaks its key's line."""
    first, second = MADE["results"]()["data"]
    assert (first["name"], first["y"], first["connectgaps"]) == ("s1", [None, 1000.0], False)
    assert (second["name"], second["x"], second["y"]) == ("s2", [60_000], [3])
    assert first["line"] != second["line"]
