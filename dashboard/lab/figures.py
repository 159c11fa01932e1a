"""Figures of experiments: a line per series over the swept parameter, with the spread.

Standalone figures: HTML with Plotly and the colours of the light theme.
"""

import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import plotly.io
from django.contrib.staticfiles.finders import find

from algorithms.lab.experiments import Axis, Experiment, Panel, Table, series_title, summarise
from controlplane.lab.comparison import RunComparison
from controlplane.lab.files import panels_of
from controlplane.numbers import compact
from dashboard.figures.parts import (
    COLORS,
    DASHES,
    Figure,
    Trace,
    dots,
    figure,
    number_axis,
    scatter,
    value_axis,
)

# More ticks than this are written over each other on a narrow screen.
MAX_TICKS = 9
# With more decades, ticks at 2 and 5 of each are written over each other.
MANY_DECADES = 2.5
TOKENS = "css/tokens.css"
_TOKEN = re.compile(r"(--[\w-]+):\s*([^;]+);")
_PAIR = re.compile(r"light-dark\(\s*([^,]+),[^)]*\)")


def lab_figures(experiment: Experiment, table: Table, measure: str = "") -> dict[str, Figure]:
    """Return one figure per panel, by the name of its y."""
    return {
        panel.y.name: panel_figure(experiment, panel, table)
        for panel in panels_of(experiment, measure)
    }


def panel_figure(experiment: Experiment, panel: Panel, table: Table) -> Figure:
    """Draw the mean of each series with whiskers from the smallest to the largest seed."""
    result = summarise(table, experiment.x.name, panel.y.name)
    series = list(dict.fromkeys(result.column("series")))
    lines = [_line(experiment, panel, result, str(name)) for name in series]
    return figure(
        lines,
        xaxis=_x_axis(experiment.x, [x for line in lines for x in line["x"]]),
        yaxis=_y_axis(panel.y, [y for line in lines for y in line["y"]]),
        margin={"l": 62, "r": 16, "t": 28, "b": 46},
        showlegend=True,
    )


def _line(experiment: Experiment, panel: Panel, summary: Table, name: str) -> Trace:
    rows = [row for row in summary.records() if row["series"] == name]
    # By its place among all that can be compared: an algorithm has its colour in every run.
    place = experiment.choices.index(name) if name in experiment.choices else 0
    color = COLORS[place % len(COLORS)]
    x, y = [row[experiment.x.name] for row in rows], [row["mean"] for row in rows]
    return scatter(
        series_title(experiment.planner, experiment.name, name), x, y, "lines+markers"
    ) | {
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [_distance(row["largest"], row["mean"]) for row in rows],
            "arrayminus": [_distance(row["mean"], row["smallest"]) for row in rows],
            "visible": any(row["deviation"] for row in rows),
            "color": color,
            "thickness": 1,
            "width": 3,
        },
        "line": {
            "color": color,
            "width": 1.8,
            "dash": DASHES[place // len(COLORS) % len(DASHES)],
        },
        "marker": dots(color, place, 7),
        "connectgaps": False,
        "customdata": [_hover_text(row, panel.y.unit) for row in rows],
        "hovertemplate": "%{customdata}",
        "meta": {"series": name},
    }


def _distance(high: Any, low: Any) -> float | None:
    return None if high is None or low is None else high - low


def comparison_figure(
    experiment: Experiment, comparison: RunComparison, names: tuple[str, str], *, divided: bool
) -> Figure:
    """Draw two runs: one over the other by series, or both with the second one dashed.

    `names`: those of the runs.
    """
    series = list(dict.fromkeys(point.series for point in comparison.points))
    traces = [
        trace
        for name in series
        for trace in _compared(experiment, comparison, name, names, divided=divided)
    ]
    y = experiment.axis_of(comparison.measure)
    xs = sorted({point.x for point in comparison.points})
    ratio = value_axis(f"{names[0]} over {names[1]}", rangemode="normal")
    return figure(
        traces,
        xaxis=_x_axis(experiment.x, xs),
        yaxis=ratio if divided else _y_axis(y, [v for trace in traces for v in trace["y"]]),
        margin={"l": 62, "r": 16, "t": 28, "b": 46},
        showlegend=True,
        shapes=[_EQUAL] if divided else [],
    )


# The line at which both runs are equal.
_EQUAL: dict[str, Any] = {
    "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 1, "y1": 1,
    "line": {"color": "--muted", "width": 1.5, "dash": "dot"},
}  # fmt: skip


def _compared(
    experiment: Experiment, comparison: RunComparison, name: str, names: tuple[str, str],
    *, divided: bool,
) -> list[Trace]:  # fmt: skip
    points = [point for point in comparison.points if point.series == name]
    place = experiment.choices.index(name) if name in experiment.choices else 0
    color, title = (
        COLORS[place % len(COLORS)],
        series_title(experiment.planner, experiment.name, name),
    )
    x = [point.x for point in points]
    if divided:
        drawn = [(title, [point.ratio for point in points], "solid")]
    else:
        drawn = [
            (f"{title}, {names[0]}", [point.this for point in points], "solid"),
            (f"{title}, {names[1]}", [point.other for point in points], "dash"),
        ]
    return [
        scatter(label, x, y, "lines+markers")
        | {"line": {"color": color, "width": 1.8, "dash": dash}, "marker": dots(color, place, 6)}
        for label, y, dash in drawn
    ]


def _hover_text(row: dict[str, Any], unit: str) -> str:
    if row["mean"] is None:
        return "no value"
    spread = f" ± {row['deviation']:.2g}" if row["runs"] > 1 else ""
    return f"{row['mean']:.4g}{spread} {unit}".rstrip()


def _x_axis(x: Axis, values: list[Any]) -> dict[str, Any]:
    is_log = x.log and all(value > 0 for value in values)
    axis = number_axis(_label(x), type="log" if is_log else "linear")
    points = sorted(set(values))
    if len(points) <= MAX_TICKS:
        axis |= {"tickvals": points, "ticktext": [_tick(point) for point in points]}
    return axis


def _tick(value: float) -> str:
    return compact(value) if abs(value) >= 10_000 else f"{value:g}"  # noqa: PLR2004 - as compact


def _y_axis(y: Axis, values: Sequence[Any]) -> dict[str, Any]:
    if y.log:
        return value_axis(_label(y), type="log", dtick=_log_ticks(values))
    # Differences between rivals are the point, not their distance from nothing.
    return value_axis(_label(y), rangemode="normal")


def _log_ticks(values: Sequence[Any]) -> str | int:
    """Return the ticks of a logarithmic axis: fewer per decade, the more decades there are."""
    known = [value for value in values if value is not None and value > 0]
    decades = math.log10(max(known) / min(known)) if known else 0.0
    if decades > MANY_DECADES:
        return 1
    return "D1" if decades < 1 else "D2"


def _label(axis: Axis) -> str:
    return f"{axis.label} ({axis.unit})" if axis.unit else axis.label


def apply_theme(figure: Any) -> Any:
    """Return the figure with every "--token" replaced by its value in the light theme."""
    if isinstance(figure, dict):
        return {name: apply_theme(part) for name, part in figure.items()}
    if isinstance(figure, list):
        return [apply_theme(part) for part in figure]
    return _tokens()[figure] if isinstance(figure, str) and figure in _tokens() else figure


def drawing(figure: Figure, name: str, *, with_plotly: bool) -> str:
    """Return the HTML of a figure; the first one on a page includes Plotly's script."""
    html: str = plotly.io.to_html(
        {"data": apply_theme(figure["data"]), "layout": apply_theme(figure["layout"])},
        config=figure["config"],
        full_html=False,
        include_plotlyjs=with_plotly,
        default_height="32rem",
        div_id=name,
    )
    return html


@cache
def _tokens() -> dict[str, str]:
    path = find(TOKENS)
    if not isinstance(path, str):
        raise FileNotFoundError(TOKENS)
    text = Path(path).read_text(encoding="utf-8")
    tokens = {name: _light(value) for name, value in _TOKEN.findall(text)}
    # A token may name another one.
    return {
        name: tokens.get(value.removeprefix("var(").removesuffix(")"), value)
        for name, value in tokens.items()
    }


def _light(value: str) -> str:
    """Return the first colour of a light-dark() pair, and any other value as it is."""
    pair = _PAIR.fullmatch(value)
    return pair[1] if pair else value
