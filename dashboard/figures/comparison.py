"""Figures that compare plans: cost against benefit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.figures.parts import (
    COLORS,
    SYMBOLS,
    Figure,
    Trace,
    figure,
    number_axis,
    scatter,
    value_axis,
)


@dataclass(frozen=True)
class PlanPoint:
    """A plan as a point: plans of one series differ in their budget; url is that of its page.

    cost is in bytes or moves.
    """

    series: str
    name: str
    url: str
    cost: int
    imbalance: float
    replication_factor: float | None
    pareto: bool


# The measures on the y axis: title and number format.
_MEASURES: Final = {
    "imbalance": ("imbalance", ".3~%"),
    "replication_factor": ("replication factor", ".3~f"),
}
# The room above and below the values: a part of their range, or of a single value.
_ROOM: Final = 0.08
_SINGLE_ROOM: Final = 0.1
# The costs on the x axis: title, and the unit behind a number.
_COSTS: Final = {"bytes": ("bytes of state moved", "B"), "moves": ("moves", "")}


def comparison_figures(
    plans: Sequence[PlanPoint], cost: str, imbalance: float, replication_factor: float | None
) -> dict[str, Figure]:
    """Return the cost (bytes or moves) against imbalance, and against the replication factor.

    Both measures of now are given.
    """
    now = {"imbalance": imbalance, "replication_factor": replication_factor}
    return {
        field: figure(
            [*_lines(plans, cost, field), _now(now[field], title, form)],
            xaxis=_x_axis(*_COSTS[cost]),
            yaxis=value_axis(
                title, automargin=True, tickformat=form, range=_y_range(plans, field, now[field])
            ),
            margin={"l": 62, "r": 16, "t": 44, "b": 46},
            hovermode="closest",
            showlegend=True,
        )
        for field, (title, form) in _MEASURES.items()
    }


def _lines(plans: Sequence[PlanPoint], cost: str, field: str) -> Iterable[Trace]:
    (title, form), unit = _MEASURES[field], _COSTS[cost][1] or " moves"
    value = f"{title} %{{y:{form}}}"
    series = dict.fromkeys(plan.series for plan in plans)
    for place, name in enumerate(series):
        selected = sorted(
            (plan for plan in plans if plan.series == name and getattr(plan, field) is not None),
            key=lambda plan: plan.cost,
        )
        symbol = SYMBOLS[place % len(SYMBOLS)]
        color = COLORS[place % len(COLORS)]
        costs, values = ([getattr(p, of) for p in selected] for of in ("cost", field))
        yield scatter(name, costs, values, "lines+markers") | {
            "customdata": [
                [plan.url, f"{plan.name}{', best trade-off' * plan.pareto}"] for plan in selected
            ],
            "line": {"color": color, "width": 1.2, "dash": "dot"},
            "marker": {
                "color": color,
                "size": [12 if plan.pareto else 9 for plan in selected],
                "symbol": [symbol if plan.pareto else f"{symbol}-open" for plan in selected],
            },
            "hovertemplate": f"%{{customdata[1]}}<br>%{{x:.3~s}}{unit}, {value}",
            "meta": {"opens": True},
        }


def _y_range(plans: Sequence[PlanPoint], field: str, now: float | None) -> list[float]:
    """Return the ends of the axis of a measure, which is never below 0.

    Equal values are in its middle: Plotly would draw them between -1 and 1.
    """
    values = [getattr(plan, field) for plan in plans] + [now]
    known = [value for value in values if value is not None] or [0.0]
    low, high = min(known), max(known)
    room = _ROOM * (high - low) or _SINGLE_ROOM * high or _SINGLE_ROOM
    return [max(0.0, low - room), high + room]


def _now(value: float | None, title: str, form: str) -> Trace:
    look = {"color": "--muted", "width": 2}
    hover = f"nothing moved, {title} %{{y:{form}}}"
    marker = {"color": "--muted", "size": 11, "symbol": "x-thin", "line": look}
    # The axis starts at 0: a marker there is drawn whole.
    return scatter(
        "now", [0], [value], "markers", marker=marker, hovertemplate=hover, cliponaxis=False
    )


def _x_axis(title: str, unit: str) -> dict[str, Any]:
    return number_axis(title, ticksuffix=unit, tickformat="~s", rangemode="tozero")
