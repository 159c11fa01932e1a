"""The charts of load shedding: feasible inputs, and what a drill would have dropped."""

from collections.abc import Sequence
from typing import Any, Final

from controlplane.shedding.drill import Drill
from controlplane.shedding.feasible import FeasibleInputs
from dashboard.figures.parts import (
    Figure,
    Trace,
    figure,
    number_axis,
    scatter,
    time_axis,
    value_axis,
)

_MARGIN: Final = {"l": 60, "r": 12, "t": 24, "b": 44}
# From no drops to the last rung.
_COLORS: Final = ("--surface", "--chart-1")


def feasible_figure(inputs: FeasibleInputs, rungs: int) -> Figure:
    """Return the rung that each pair of rates needs, the border without drops, and the present."""
    finding = (
        f"Rung by the rates of {inputs.x} and {inputs.y}; now {inputs.now[0]:,.0f} and"
        f" {inputs.now[1]:,.0f} records/s"
    )
    return figure(
        [_cells(inputs, rungs), *_lines(inputs)],
        xaxis=number_axis(f"{inputs.x}, records/s", tickformat="~s", rangemode="tozero"),
        yaxis=value_axis(f"{inputs.y}, records/s", tickformat="~s"),
        hovermode="closest",
        margin=_MARGIN | {"t": 34},
        showlegend=True,
        meta={"finding": finding},
    )


def _cells(inputs: FeasibleInputs, rungs: int) -> Trace:
    colorbar = {
        "title": {"text": "rung", "side": "right"}, "thickness": 8, "outlinewidth": 0,
        "tickvals": list(range(rungs + 1)),
    }  # fmt: skip
    return {
        "type": "heatmap",
        "x": list(inputs.x_rates),
        "y": list(inputs.y_rates),
        "z": [list(row) for row in inputs.rungs],
        "zmin": 0,
        "zmax": rungs,
        "colorscale": [[0, _COLORS[0]], [1, _COLORS[1]]],
        "opacity": 0.75,
        "xgap": 1,
        "ygap": 1,
        "colorbar": colorbar,
        "hovertemplate": "%{x:,.3~s} and %{y:,.3~s} records/s: rung %{z}<extra></extra>",
    }


def _lines(inputs: FeasibleInputs) -> list[Trace]:
    """Return the border without drops, the rates of the last day if they are known, and now."""
    border = _path("nothing is dropped below", inputs.border, "--bad", "dash", 1.6)
    day = _path("the last 24 h", inputs.track, "--muted", "dot", 1.0)
    now = scatter(
        "now", [inputs.now[0]], [inputs.now[1]], "markers",
        marker={"color": "--ink", "size": 9},
        hovertemplate="now: %{x:,.3~s} and %{y:,.3~s} records/s<extra></extra>",
    )  # fmt: skip
    return [border, *([day] if inputs.track else []), now]


def _path(
    name: str, pairs: Sequence[tuple[float, float]], color: str, dash: str, width: float
) -> Trace:
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    look = {"color": color, "width": width, "dash": dash}
    return scatter(name, xs, ys, line=look, hoverinfo="skip")


def drill_figure(drill: Drill) -> Figure:
    """Return the input and what is kept of it over time, with the changes of the rung."""
    times = [round(point.start.timestamp() * 1000) for point in drill.points]
    kept = scatter(
        "kept", times, [round(point.kept_per_s, 3) for point in drill.points],
        line={"color": "--chart-1", "width": 1.6}, fill="tozeroy",
        fillcolor="--accent-soft", hovertemplate="%{y:,.3~s}/s",
    )  # fmt: skip
    arriving = scatter(
        "input", times, [round(point.input_per_s, 3) for point in drill.points],
        line={"color": "--bad", "width": 1.4}, fill="tonexty",
        fillcolor="--bad-soft", hovertemplate="%{y:,.3~s}/s",
    )  # fmt: skip
    capacity = scatter(
        "processed without drops", times,
        [
            round(point.input_per_s / point.factor, 3) if point.factor else None
            for point in drill.points
        ],
        line={"color": "--muted", "width": 1.2, "dash": "dash"}, hovertemplate="%{y:,.3~s}/s",
    )  # fmt: skip
    changes = [(round(moment.timestamp() * 1000), rung) for moment, rung in drill.changes]
    finding = (
        f"Input and kept records: {100 * drill.dropped_share:.1f} % would have been dropped,"
        f" the largest input factor was {drill.largest_factor:.2f}"
    )
    return figure(
        [kept, arriving, capacity],
        xaxis=time_axis(),
        yaxis=value_axis("records/s", tickformat="~s"),
        shapes=[_mark(t) for t, _ in changes],
        annotations=[_label(t, rung) for t, rung in changes],
        margin=_MARGIN,
        meta={"finding": finding},
    )


def _mark(t: int) -> dict[str, Any]:
    return {
        "type": "line", "x0": t, "x1": t, "yref": "paper", "y0": 0, "y1": 1,
        "line": {"color": "--muted", "width": 1, "dash": "dot"},
    }  # fmt: skip


def _label(t: int, rung: int) -> dict[str, Any]:
    return {
        "x": t, "yref": "paper", "y": 1, "yanchor": "bottom", "text": f"rung {rung}",
        "showarrow": False, "font": {"size": 11, "color": "--ink"},
    }  # fmt: skip
