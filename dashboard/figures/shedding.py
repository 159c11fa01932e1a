"""The charts of load shedding: feasible inputs, and what a drill would have dropped."""

from collections.abc import Sequence
from math import ceil
from typing import Any, Final

from controlplane.planners.shedding.drill import Drill
from controlplane.planners.shedding.feasible import FeasibleInputs
from dashboard.figures.parts import (
    Figure,
    Trace,
    end_label,
    figure,
    ms,
    number_axis,
    scatter,
    time_axis,
    value_axis,
    vertical,
    vertical_label,
)

_MARGIN: Final = {"l": 60, "r": 12, "t": 12, "b": 44}
# The colours of rungs with drops: --rung-1 and so on.
RUNG_LEVELS: Final = 5
# The largest input of the last day is labelled if its factor exceeds the present one so much.
_LARGER: Final = 1.05


def rung_level(rung: int, last: int) -> int:
    """Return the level of the colour of a rung: 0 for no drops, 5 for the last rung."""
    return ceil(RUNG_LEVELS * rung / last) if last else 0


def feasible_figure(inputs: FeasibleInputs, rungs: int, factor: float | None) -> Figure:
    """Return the rung that each pair of rates needs, the border without drops, and the present.

    `rungs`: the number of rungs with drops; `factor`: the present input factor, None if it is not
    known.
    """
    finding = (
        f"Drop level by the rates of {inputs.x} and {inputs.y}; now {inputs.now[0]:,.0f} and"
        f" {inputs.now[1]:,.0f} records/s"
    )
    return figure(
        [_cells(inputs, rungs), *_lines(inputs)],
        xaxis=number_axis(f"{inputs.x}, records/s", tickformat="~s", rangemode="tozero"),
        yaxis=value_axis(f"{inputs.y}, records/s", tickformat="~s"),
        hovermode="closest",
        margin=_MARGIN,
        annotations=_notes(inputs, factor),
        showlegend=False,
        meta={"finding": finding},
    )


def _cells(inputs: FeasibleInputs, rungs: int) -> Trace:
    return {
        "type": "heatmap",
        "x": list(inputs.x_rates),
        "y": list(inputs.y_rates),
        "z": [list(row) for row in inputs.rungs],
        "zmin": -0.5,
        "zmax": rungs + 0.5,
        "colorscale": _scale(rungs),
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": "%{x:,.3~s} and %{y:,.3~s} records/s: drop level %{z}<extra></extra>",
    }


def _scale(rungs: int) -> list[list[Any]]:
    """Return a scale with one colour per rung, as the ladder has them."""
    scale: list[list[Any]] = []
    for rung in range(rungs + 1):
        color = f"--rung-{rung_level(rung, rungs)}"
        scale += [[rung / (rungs + 1), color], [(rung + 1) / (rungs + 1), color]]
    return scale


def _lines(inputs: FeasibleInputs) -> list[Trace]:
    """Return the border without drops, the rates of the last day if they are known, and now."""
    border = _path("nothing is dropped below", inputs.border, "--limit", "dash", 1.5)
    day = _path("the last 24 h", inputs.track, "--ink", "dot", 1.2)
    points = [_point("now", inputs.now, {"color": "--ink", "size": 9})]
    if inputs.largest is not None:
        hollow = {"color": "--surface", "size": 9, "line": {"color": "--ink", "width": 2}}
        pair = inputs.largest.x, inputs.largest.y
        points.insert(0, _point("largest of the last 24 h", pair, hollow))
    return [border, *([day] if inputs.track else []), *points]


def _point(name: str, pair: tuple[float, float], marker: dict[str, Any]) -> Trace:
    return scatter(
        name, [pair[0]], [pair[1]], "markers", marker=marker,
        hovertemplate=f"{name}: %{{x:,.3~s}} and %{{y:,.3~s}} records/s<extra></extra>",
    )  # fmt: skip


def _path(
    name: str, pairs: Sequence[tuple[float, float]], color: str, dash: str, width: float
) -> Trace:
    xs, ys = [x for x, _ in pairs], [y for _, y in pairs]
    look = {"color": color, "width": width, "dash": dash}
    return scatter(name, xs, ys, line=look, hoverinfo="skip")


def _notes(inputs: FeasibleInputs, factor: float | None) -> list[dict[str, Any]]:
    """Return the labels of the present and of the largest input, beside their points."""
    text = "now" if factor is None else f"now: factor {factor:.2f}"
    right = {"xanchor": "left", "xshift": 9}
    notes = [_note(text, inputs.now, right)]
    largest = inputs.largest
    if largest is not None and largest.factor > _LARGER * (factor or 0.0):
        name = f"{largest.time:%Y-%m-%d %H:%M}: factor {largest.factor:.2f}"
        notes.append(_note(name, (largest.x, largest.y), {"yanchor": "bottom", "yshift": 9}))
    return notes


def _note(text: str, pair: tuple[float, float], place: dict[str, Any]) -> dict[str, Any]:
    return place | {
        "x": pair[0], "y": pair[1], "text": text, "showarrow": False,
        "bgcolor": "--surface", "bordercolor": "--line", "borderpad": 2,
        "font": {"size": 11, "color": "--ink"},
    }  # fmt: skip


def drill_figure(drill: Drill) -> Figure:
    """Return the input and what is kept of it over time, with the changes of the rung."""
    finding = (
        f"Input and kept records: {100 * drill.dropped_share:.1f} % would have been dropped,"
        f" the largest input factor was {drill.largest_factor:.2f}"
    )
    changes = [(ms(moment), rung) for moment, rung in drill.changes]
    return figure(
        _drill_lines(drill),
        xaxis=time_axis(),
        yaxis=value_axis("records/s", tickformat="~s"),
        shapes=[vertical(t, "--muted") for t, _ in changes],
        annotations=[
            *(vertical_label(t, f"drop level {rung}", "--ink") for t, rung in changes),
            *_ends(drill),
        ],
        showlegend=False,
        margin=_MARGIN | {"t": 24, "r": 84},
        meta={"finding": finding},
    )


def _drill_lines(drill: Drill) -> list[Trace]:
    """Return what is kept, the input above it, and what the cluster can process of its mix."""
    times = [ms(point.start) for point in drill.points]
    most = [point.input_per_s / point.factor if point.factor else None for point in drill.points]
    return [
        scatter(
            "kept", times, [round(point.kept_per_s, 3) for point in drill.points],
            line={"color": "--series-1", "width": 1.75}, fill="tozeroy",
            fillcolor="--accent-soft", hovertemplate="%{y:,.3~s}/s",
        ),
        scatter(
            "input", times, [round(point.input_per_s, 3) for point in drill.points],
            line={"color": "--series-5", "width": 1.4}, fill="tonexty",
            fillcolor="--series-4", hovertemplate="%{y:,.3~s}/s",
        ),
        scatter(
            "processed without drops", times,
            [None if rate is None else round(rate, 3) for rate in most],
            line={"color": "--limit", "width": 1.5, "dash": "dash"},
            hovertemplate="%{y:,.3~s}/s",
        ),
    ]  # fmt: skip


def _ends(drill: Drill) -> list[dict[str, Any]]:
    """Return the names of lines at their ends; lines that end together have one label."""
    if not drill.points:
        return []
    last = drill.points[-1]
    labels = [(last.input_per_s, "input, kept", "--ink")]
    if last.kept_per_s < 0.93 * last.input_per_s:
        labels = [(last.input_per_s, "input", "--ink"), (last.kept_per_s, "kept", "--series-1")]
    if last.factor:
        labels.append((last.input_per_s / last.factor, "capacity", "--limit"))
    return [end_label(*label) for label in labels]
