"""Charts of a node over time: load against its limit, backlog, latency, state."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isnan
from typing import Any, Final

from algorithms.vocabulary import Flags, Floats
from controlplane.numbers import compact
from controlplane.telemetry.grid import Grid
from controlplane.telemetry.measures import PRESENT
from dashboard.figures.parts import (
    FAINT,
    Figure,
    PlanMark,
    Trace,
    end_label,
    figure,
    interval,
    limit_note,
    limit_shapes,
    marks_axis,
    ms,
    plan_marks,
    scatter,
    time_axis,
    value_axis,
)
from dashboard.figures.thinning import Sample, with_gaps

# The figures of samples that the charts need.
FIGURES: Final = (
    "loads", "node_waiting", "node_p95", "node_state", "p95", "arrived", "in",
)  # fmt: skip
# Labels need so much of the height of a chart.
_APART: Final = 0.08
_SECOND_MS: Final = 1000
_WAITED: Final = "Records that waited for a start"
_MEGABYTE: Final = 1e6


@dataclass(frozen=True)
class NodeLimits:
    """The limits of a node: deliveries/s, those of a second of work, and latency in ms."""

    load: float
    backlog: float
    latency_ms: float


@dataclass(frozen=True)
class WithoutPlan:
    """The load that the node would have without a plan: (ms, deliveries/s) since the plan's end.

    `interval`: the half width of the 80 % interval of the model's errors, None if it is unknown.
    """

    proposal: int
    points: Sequence[tuple[int, float]]
    interval: float | None


def node_figures(
    series: Grid, index: int, limits: NodeLimits, marks: Sequence[PlanMark],
    ends: tuple[datetime, datetime], waited: Flags, without: WithoutPlan | None = None,
) -> dict[str, Figure]:  # fmt: skip
    """Return the charts load, backlog, latency and state of a node.

    `series`: of FIGURES; `ends`: of the whole axis; `waited` bool[t]: of which the records waited
    for a start; `without`: the load without the last plan, None if it did not change the node.
    """
    samples = with_gaps(_samples(series.trailing(PRESENT.total_seconds()), index))
    known = _samples(series, index)
    batches = with_gaps([s | {"waited": w} for s, w in zip(known, waited.tolist(), strict=True)])
    latency = limits.latency_ms / _SECOND_MS
    charts: dict[str, tuple[Sequence[tuple[str, str]], str, float | None]] = {
        "load": ([("load", "load")], "deliveries/s", limits.load),
        "backlog": ([("backlog", "backlog")], "deliveries", limits.backlog),
        "latency": ([("latency", "node"), ("cluster", "cluster")], "s", latency),
        "state": ([("state", "state")], "MB", None),
    }
    figures = {
        name: _chart(samples, batches, *chart, marks, ends) for name, chart in charts.items()
    }
    if without is not None and without.points:
        _add_without(figures["load"], without)
    return figures


def _add_without(chart: Figure, without: WithoutPlan) -> None:
    """Add the counterfactual to the chart of the load: a dashed line with its interval."""
    times = [time for time, _ in without.points]
    values = [value for _, value in without.points]
    name, layout = f"without proposal {without.proposal}", chart["layout"]
    half = without.interval
    if half is not None:
        low = [max(0.0, value - half) for value in values]
        high = [value + half for value in values]
        look = {"fillcolor": "--line", "opacity": 0.2, "showlegend": False}
        chart["data"] += interval(f"{name}, interval", times, low, high, **look)
    chart["data"].append(
        scatter(name, times, values, connectgaps=False, hovertemplate="%{y:,.3~r} deliveries/s",
                line={"color": "--series-4", "width": 1.75, "dash": "dash"})
    )  # fmt: skip
    top = max(layout["yaxis"]["range"][1], 1.15 * max(values))
    layout["yaxis"]["range"] = [0, top]
    for shape in layout["shapes"]:
        if shape["type"] == "rect":
            shape["y1"] = top
    near = [label["y"] for label in layout["annotations"] if label.get("xshift")]
    place = values[-1]
    if any(abs(place - other) < _APART * top for other in near):
        place = max(near) + _APART * top
    layout["annotations"].append(end_label(place, f"without {without.proposal}"))
    layout["meta"]["finding"] += f"; {name} {values[-1]:,.3g} deliveries/s"


def _samples(series: Grid, index: int) -> list[Sample]:
    """Return the drawn values of a node, None for missing ones; `t` in ms."""
    drawn: dict[str, Floats] = {
        "load": series.column(series.loads, index),
        "backlog": series.column(series["node_waiting"], index),
        "latency": series.column(series["node_p95"], index) / _SECOND_MS,
        "cluster": series["p95"] / _SECOND_MS,
        "state": series.column(series["node_state"], index) / _MEGABYTE,
    }
    columns = {name: values.tolist() for name, values in drawn.items()}
    return [
        {"t": round(1000 * t)}
        | {name: None if isnan(values[i]) else values[i] for name, values in columns.items()}
        for i, t in enumerate(series.times.tolist())
    ]


def _chart(
    samples: Sequence[Sample], batches: Sequence[Sample], lines: Sequence[tuple[str, str]],
    unit: str, limit: float | None, marks: Sequence[PlanMark], ends: tuple[datetime, datetime],
) -> Figure:  # fmt: skip
    """Return the means of a minute with labels at their ends, the limit, and the plans.

    `batches`: the micro-batches, drawn faint below the first line.
    """
    traces: list[Trace] = [
        scatter(
            name, [s["t"] for s in samples], [s.get(field) for s in samples],
            connectgaps=False, hovertemplate=f"%{{y:,.3~r}} {unit}",
            line={"color": "--series-1" if place == 0 else "--before", "width": 2.25,
                  "dash": "solid" if place == 0 else "dash"},
        )
        for place, (field, name) in enumerate(lines)
    ]  # fmt: skip
    faint = scatter(
        "micro-batches", [s["t"] for s in batches], [s.get(lines[0][0]) for s in batches],
        connectgaps=False, hoverinfo="skip", opacity=FAINT,
        line={"color": "--series-1", "width": 1},
    )  # fmt: skip
    known = {name: [s[field] for s in samples if s.get(field) is not None] for field, name in lines}
    top, beyond = _scale(batches, [field for field, _ in lines], limit, unit)
    labels = _labels(known, top)
    if limit is not None:
        labels.append(limit_note(f"limit {limit:,.4g} {unit}", limit))
    return figure(
        [faint, *traces, plan_marks([*marks, *beyond])],
        xaxis=time_axis() | {"range": list(map(ms, ends))},
        yaxis=value_axis(unit, range=[0, top or 1]),
        yaxis2=marks_axis(),
        shapes=limit_shapes(limit, top),
        annotations=labels,
        showlegend=False,
        margin={"l": 52, "r": 84, "t": 22, "b": 28},
        meta={"finding": _finding(known, unit, limit)},
    )


def _scale(
    batches: Sequence[Sample], fields: Sequence[str], limit: float | None, unit: str
) -> tuple[float, list[PlanMark]]:
    """Return the top of the axis, and marks of the micro-batches beyond it.

    Those whose records waited for a start do not set the scale if there are others.
    """
    highest = [(max(s.get(field) or 0.0 for field in fields), s) for s in batches]
    loads = max((value for value, s in highest if not s.get("waited")), default=0.0)
    top = 1.15 * max(limit or 0.0, loads or max((value for value, _ in highest), default=0.0))
    beyond = [(f"{compact(value)} {unit}", s["t"]) for value, s in highest if value > top]
    return top, [PlanMark(t, f"↑ {text}", f"{_WAITED}: {text}") for text, t in beyond]


def _labels(known: dict[str, list[float]], top: float) -> list[dict[str, Any]]:
    """Return the names of lines at their ends; lines that end together have one label."""
    ends: list[tuple[float, str]] = []
    for name, values in known.items():
        if values and ends and abs(values[-1] - ends[-1][0]) < _APART * top:
            ends[-1] = ends[-1][0], f"{ends[-1][1]}, {name}"
        elif values:
            ends.append((values[-1], name))
    return [end_label(value, name) for value, name in ends]


def _finding(known: dict[str, list[float]], unit: str, limit: float | None) -> str:
    """Return what the chart shows, for its label."""
    parts = [f"{name} {values[-1]:,.3g} {unit}" for name, values in known.items() if values]
    if not parts:
        return "No data in this time range"
    text = ", ".join(parts)
    return text if limit is None else f"{text}; limit {limit:,.4g} {unit}"


def figure_titles() -> dict[str, str]:
    """Return the titles of the charts by name."""
    return {
        "load": "Load against its limit",
        "backlog": "Backlog",
        "latency": "Latency p95",
        "state": "State",
    }
