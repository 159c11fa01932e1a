"""Plans against each other: what they move, and what that brings."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.figures.lab import COLORS, SYMBOLS
from dashboard.figures.parts import Figure, Trace, figure, value_axis


@dataclass(frozen=True)
class Plan:
    """A plan as a point: plans of one series differ in their budget; url is that of its page."""

    series: str
    name: str
    url: str
    bytes: int
    imbalance: float
    replication_factor: float | None
    pareto: bool


_AXES: Final = (("imbalance", "imbalance"), ("replication_factor", "replication factor"))


def comparison_figures(
    plans: Sequence[Plan], imbalance: float, replication_factor: float | None
) -> dict[str, Figure]:
    """Return bytes against imbalance, and against the replication factor; both of now are given."""
    now = {"imbalance": imbalance, "replication_factor": replication_factor}
    return {
        field: figure(
            [*_lines(plans, field, title), _now(now[field], title)],
            xaxis=_x_axis(),
            yaxis=value_axis(title, rangemode="normal", automargin=True),
            margin={"l": 62, "r": 16, "t": 44, "b": 46},
            hovermode="closest",
            showlegend=True,
        )
        for field, title in _AXES
    }


def _lines(plans: Sequence[Plan], field: str, title: str) -> Iterable[Trace]:
    series = dict.fromkeys(plan.series for plan in plans)
    for place, name in enumerate(series):
        mine = sorted(
            (plan for plan in plans if plan.series == name and getattr(plan, field) is not None),
            key=lambda plan: plan.bytes,
        )
        symbol = SYMBOLS[place % len(SYMBOLS)]
        color = COLORS[place % len(COLORS)]
        yield {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": [plan.bytes for plan in mine],
            "y": [getattr(plan, field) for plan in mine],
            "customdata": [[plan.url, _told(plan)] for plan in mine],
            "line": {"color": color, "width": 1.2, "dash": "dot"},
            "marker": {
                "color": color,
                "size": [12 if plan.pareto else 9 for plan in mine],
                "symbol": [symbol if plan.pareto else f"{symbol}-open" for plan in mine],
            },
            "hovertemplate": f"%{{customdata[1]}}<br>%{{x:.3s}}B, {title} %{{y:.3f}}",
            "meta": {"opens": True},
        }


def _told(plan: Plan) -> str:
    return f"{plan.name}{', Pareto' if plan.pareto else ''}"


def _now(value: float | None, title: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "now",
        "x": [0],
        "y": [value],
        "marker": {"color": "--muted", "size": 11, "symbol": "x-thin", "line": {
            "color": "--muted", "width": 2,
        }},
        "hovertemplate": f"nothing moved, {title} %{{y:.3f}}",
    }  # fmt: skip


def _x_axis() -> dict[str, Any]:
    return {
        "title": {"text": "bytes of state moved", "standoff": 8, "font": {"size": 12}},
        "ticksuffix": "B",
        "tickformat": "~s",
        "linecolor": "--line",
        "tickcolor": "--line",
        "ticks": "outside",
        "ticklen": 4,
        "gridcolor": "--grid",
        "zeroline": False,
        "rangemode": "tozero",
    }
