"""A proposal, node by node and action by action; its execution, step by step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.figures.parts import (
    MAX_POINTS,
    Figure,
    Trace,
    category_axis,
    figure,
    scatter,
    value_axis,
)

# Up to so many points each is a dot that one can point at.
MAX_DOTS = 60
MOST_TICKS = 10
_MARGIN = {"l": 52, "r": 12, "t": 26, "b": 40}


@dataclass(frozen=True)
class StepShown:
    """A step of an execution: how many actions are applied after it, and the imbalance measured."""

    number: int
    made: int
    back: bool
    before: float | None
    after: float | None


def before_after(
    names: Sequence[str], before: Sequence[float], after: Sequence[float], unit: str
) -> Figure:
    """Draw two bars per node; the pale one is before."""
    return figure(
        [
            _bars("before", names, before, "--before", unit),
            _bars("after", names, after, "--chart-1", unit),
        ],
        barmode="group",
        bargap=0.35,
        bargroupgap=0.08,
        xaxis=category_axis(),
        yaxis=value_axis(unit),
        margin={"l": 52, "r": 12, "t": 26, "b": 28},
    )


def proposal_figures(
    names: Sequence[str],
    before: dict[str, Any],
    after: dict[str, Any],
    imbalance: Sequence[float] = (),
) -> dict[str, Figure]:
    """Return the charts of a proposal by name: measures per node, and the imbalance on the way."""
    return {
        "rates": before_after(names, before.get("rates", []), after.get("rates", []), "records/s"),
        "loads": before_after(names, before.get("loads", []), after.get("loads", []), "queries"),
        "imbalance": imbalance_by_action(before.get("imbalance", 0.0), imbalance),
    }


def imbalance_by_action(start: float, imbalance: Sequence[float]) -> Figure:
    """Draw the imbalance after each action, from the start on, over its lower bound 0."""
    places, values = worst_of([start, *imbalance])
    drawn = _dotted("after each action", places, values, {"color": "--chart-1"})
    last = max(1, len(imbalance))
    lines = [
        _level("now", start, last, "--chart-3", "dash"),
        _level("lower bound 0 %", 0.0, last, "--muted", "dot"),
    ]
    return figure(
        [drawn, *lines],
        xaxis=_counting_axis("actions applied", last),
        yaxis=value_axis("of capacity", tickformat=".1~%"),
        margin=_MARGIN,
    )


def balance_of_steps(
    start: float, imbalance: Sequence[float], steps: Sequence[StepShown]
) -> Figure:
    """Draw the imbalance measured after each step beside the one that the plan has there."""
    promised = [start, *imbalance]
    numbers = [0, *(step.number for step in steps)]
    predicted = [start, *(promised[min(step.made, len(imbalance))] for step in steps)]
    measured = [steps[0].before if steps else None, *(step.after for step in steps)]
    traces = [
        _over_steps("predicted", numbers, predicted, "--chart-3", "dash"),
        _over_steps("measured", numbers, measured, "--chart-1", "solid"),
    ]
    rollback_step = next((step.number for step in steps if step.back), None)
    return figure(
        traces,
        xaxis=_counting_axis("steps", len(steps)),
        yaxis=value_axis("of capacity", tickformat=".1~%"),
        shapes=[] if rollback_step is None else [_rollback_line(rollback_step - 0.5)],
        margin=_MARGIN,
    )


def worst_of(values: Sequence[float], points: int = MAX_POINTS) -> tuple[list[int], list[float]]:
    """Return places and values, of many in a row the largest: no peak on the way is hidden."""
    size = -(-len(values) // points)
    if size <= 1:
        return list(range(len(values))), list(values)
    places = [
        max(range(begin, min(begin + size, len(values))), key=values.__getitem__)
        for begin in range(0, len(values), size)
    ]
    places = sorted({0, *places, len(values) - 1})
    return places, [values[place] for place in places]


def _bars(name: str, names: Sequence[str], values: Sequence[float], color: str, unit: str) -> Trace:
    return {
        "type": "bar",
        "name": name,
        "x": list(names),
        "y": list(values),
        "marker": {"color": color},
        "hovertemplate": f"%{{y:,.3~r}} {unit}",
    }


def _level(name: str, value: float, last: int, color: str, dash: str) -> Trace:
    look = {"color": color, "width": 1.2, "dash": dash}
    return scatter(name, [0, last], [value, value], line=look, hoverinfo="skip")


def _over_steps(
    name: str, numbers: Sequence[int], values: Sequence[float | None], color: str, dash: str
) -> Trace:
    look = {"color": color, "dash": dash}
    return _dotted(name, numbers, values, look) | {"connectgaps": True}


def _dotted(name: str, x: Sequence[int], y: Sequence[Any], look: dict[str, str]) -> Trace:
    """Return a line of shares, with dots while one can point at each."""
    mode = "lines+markers" if len(y) <= MAX_DOTS else "lines"
    more: dict[str, Any] = {"marker": {"size": 5}, "hovertemplate": "%{y:.2%}"}
    return scatter(name, x, y, mode, line={"width": 1.8, **look}, **more)


def _counting_axis(title: str, last: int) -> dict[str, Any]:
    """Return an axis of whole numbers from 0 on, a tick at each or at every so many."""
    return {
        "title": {"text": title, "standoff": 4, "font": {"size": 11}},
        "showgrid": False,
        "zeroline": False,
        "linecolor": "--line",
        "tickformat": ",d",
        "rangemode": "tozero",
        "tick0": 0,
        "dtick": _tick(last),
    }


def _tick(last: int) -> int:
    """Return 1, 2 or 5 times a power of ten: the least with which there are few ticks."""
    scale = 1
    while True:
        for factor in (1, 2, 5):
            if last <= factor * scale * MOST_TICKS:
                return factor * scale
        scale *= 10


def _rollback_line(place: float) -> dict[str, Any]:
    """Return the line from which on it goes back."""
    return {
        "type": "line",
        "yref": "paper",
        "x0": place,
        "x1": place,
        "y0": 0,
        "y1": 1,
        "line": {"color": "--muted", "width": 1, "dash": "dot"},
        "label": {
            "text": "rollback from here",
            "textposition": "end",
            "textangle": 0,
            "xanchor": "left",
            "yanchor": "top",
            "font": {"size": 10, "color": "--muted"},
        },
    }
