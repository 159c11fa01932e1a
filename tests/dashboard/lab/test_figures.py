"""An experiment's figure: a line per series, whiskers over the seeds, a logarithm where wanted."""

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from algorithms.lab.experiments import EXPERIMENTS, Axis, Experiment, Panel, Table
from algorithms.lab.registry import algorithm_title
from controlplane.lab.files import panels_of
from dashboard.lab.figures import apply_theme, drawing, lab_figures
from tests.controlplane.lab.small_experiments import Small, small_experiment

pytestmark = pytest.mark.nightly("lab")


@pytest.fixture
def small() -> Experiment:
    return small_experiment()


def table_of(one: Experiment, seeds: int = 3, values: tuple[float, ...] = (1.0, 10.0)) -> Table:
    return one.run(Small(seeds=seeds), values)


def line(figure: dict[str, Any], series: str) -> dict[str, Any]:
    found: dict[str, Any] = next(t for t in figure["data"] if t["meta"]["series"] == series)
    return found


def test_each_series_is_a_line_of_means_with_whiskers(small: Experiment) -> None:
    """Areas 2 + seed at width 1: mean 3, deviation 1."""
    figure = lab_figures(small, table_of(small))["area"]
    single = line(figure, "single")
    assert (single["x"], single["y"]) == ([1.0, 10.0], [3.0, 21.0])
    assert single["error_y"]["array"] == [1.0, 1.0]
    assert single["customdata"][0] == "3 ± 1 m²"
    assert line(figure, "double")["y"] == [5.0, 41.0]


def test_one_seed_has_no_whiskers(small: Experiment) -> None:
    """There is no deviation of one."""
    single = line(lab_figures(small, table_of(small, seeds=1))["area"], "single")
    assert single["error_y"]["visible"] is False
    assert single["customdata"][0] == "2 m²"


def test_the_axis_is_logarithmic_where_all_values_have_a_logarithm(small: Experiment) -> None:
    """Plotly would leave out a point at 0 without a word."""
    axis = lab_figures(small, table_of(small))["area"]["layout"]["xaxis"]
    assert (axis["type"], axis["tickvals"]) == ("log", [1.0, 10.0])
    assert axis["ticktext"] == ["1", "10"]
    assert axis["title"]["text"] == "Width (m)"
    flat = lab_figures(small, table_of(small, values=(0.0, 10.0)))["area"]["layout"]["xaxis"]
    assert flat["type"] == "linear"


def test_an_algorithm_has_its_colour_in_every_run(small: Experiment) -> None:
    """Two runs side by side are read together."""
    both = lab_figures(small, table_of(small))["area"]
    alone = lab_figures(small, small.run(Small(seeds=1), [1.0], ["double"]))["area"]
    assert line(alone, "double")["line"] == line(both, "double")["line"]
    assert line(both, "single")["line"] != line(both, "double")["line"]


@pytest.mark.parametrize(
    ("values", "ticks"), [((1.0, 2.0), "D1"), ((1.0, 50.0), "D2"), ((1.0, 1e5), 1)]
)
def test_a_logarithmic_axis_has_room_for_its_ticks(
    small: Experiment, values: tuple[float, ...], ticks: str | int
) -> None:
    area = Panel("Area over width", Axis("area", "Area", "m²", log=True))
    drawn = replace(small, panels=(area,))
    table = drawn.run(Small(seeds=1), values, ["single"])
    assert lab_figures(drawn, table)["area"]["layout"]["yaxis"]["dtick"] == ticks


def test_another_measure_can_be_drawn(small: Experiment) -> None:
    """Every column that is measured; an unknown one gives the experiment's own panels."""
    assert list(lab_figures(small, table_of(small), "seconds")) == ["seconds"]
    assert panels_of(small, "seconds")[0].y.label == "Time of a trial"
    assert panels_of(small, "nothing") == small.panels


def test_a_series_is_called_as_its_algorithm() -> None:
    assert algorithm_title("placement", "least_cost") == "Least cost"
    assert algorithm_title("placement", "as_it_was") == "as it was"


@pytest.mark.parametrize("one", [o for f in EXPERIMENTS.values() for o in f], ids=lambda o: o.name)
def test_every_experiment_has_a_figure_that_plotly_accepts(one: Experiment) -> None:
    """Also where runs gave no value, and all that can be compared is; no two lines look alike."""
    y = one.panels[0].y.name
    records = [
        dict.fromkeys(one.columns) | {one.x.name: x, "series": name, "seed": 0, y: None}
        for x in one.values
        for name in one.choices
    ]
    figure = apply_theme(lab_figures(one, Table.from_records(one.columns, records))[y])
    go.Figure(data=figure["data"], layout=figure["layout"])
    looks = {(t["line"]["color"], t["line"]["dash"], t["marker"]["symbol"]) for t in figure["data"]}
    assert len(looks) == len(one.choices)


def test_a_drawing_needs_nothing_else(small: Experiment) -> None:
    """Plotly and the colours are inside; no address is asked for anything."""
    figure = lab_figures(small, table_of(small))["area"]
    html = drawing(figure, "area", with_plotly=True)
    assert "--chart" not in html.partition("Plotly.newPlot")[2]
    assert "cdn.plot.ly" not in html.partition("Plotly.newPlot")[2]
    assert "src=" not in html[:200]
    assert len(drawing(figure, "area", with_plotly=False)) < 20_000
