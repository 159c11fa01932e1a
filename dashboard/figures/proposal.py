"""Charts of a proposal: the imbalance after each action, and after each step of its execution."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.numbers import percent
from dashboard.figures.parts import (
    Figure,
    Trace,
    figure,
    limit_notes,
    limit_shapes,
    scatter,
    value_axis,
    vertical,
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


def imbalance_by_action(
    start: float, places: Sequence[int], imbalance: Sequence[float], limit: float | None = None
) -> Figure:
    """Draw the imbalance after so many actions, from the start on, against the policy's limit."""
    numbers, values = [0, *places], [start, *imbalance]
    last = max(1, *numbers)
    look = {"color": "--series-1", "width": 1.8, "shape": "hv"}
    dots = "lines+markers" if len(values) <= MAX_DOTS else "lines"
    drawn = scatter(
        "after each action", numbers, values, dots, line=look, marker={"size": 5},
        hovertemplate="%{y:.2%}",
    )  # fmt: skip
    top = 1.12 * max([*values, limit or 0.0, 0.01])
    end, peak = values[-1], max(values)
    worse = f"at most {percent(peak)} in between" if peak > start else "never above the start"
    finding = f"Imbalance from {percent(start)} to {percent(end)} after {last} actions, {worse}"
    return figure(
        [drawn],
        xaxis=_counting_axis("actions applied", last),
        yaxis=value_axis("of capacity", tickformat=".1~%", range=[0, top]),
        shapes=limit_shapes(limit, top),
        annotations=limit_notes(limit, ".0%"),
        margin=_MARGIN | {"t": 8},
        meta={"finding": finding},
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
        _over_steps("predicted", numbers, predicted, "--series-2", "dash"),
        _over_steps("measured", numbers, measured, "--series-1", "solid"),
    ]
    rollback_step = next((step.number for step in steps if step.back), None)
    return figure(
        traces,
        xaxis=_counting_axis("steps", len(steps)),
        yaxis=value_axis("of capacity", tickformat=".1~%"),
        shapes=[] if rollback_step is None else [_rollback_line(rollback_step - 0.5)],
        margin=_MARGIN,
    )


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
    return vertical(place, "--muted") | {
        "label": {
            "text": "rollback from here",
            "textposition": "end",
            "textangle": 0,
            "xanchor": "left",
            "yanchor": "top",
            "font": {"size": 10, "color": "--muted"},
        },
    }
