"""Figures of the ledger: predicted against measured values."""

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.planning.measures import FULLEST, IMBALANCE, SKEW
from controlplane.policies.assessment import DROPPED
from dashboard.figures.parts import COLORS, Figure, Trace, dots, figure, scatter, value_axis

# An entry: the title of its planner, the proposal's page, approved and measured figures.
Entry = tuple[str, str, Mapping[str, float], Mapping[str, float]]

THOUSAND = 1000
_SHARES = frozenset({IMBALANCE.name, FULLEST.name, SKEW, DROPPED})
# Units of axes by those of the values, and what one of the axis has of them.
_SCALES = {"ms": ("s", 1000.0)}


def ledger_figures(entries: Sequence[Entry], figures: Mapping[str, str]) -> dict[str, Figure]:
    """Return one figure per measure that some entry has both of; figures: its unit by name."""
    drawn = {
        name: _figure(known, name, unit)
        for name, unit in figures.items()
        if (known := [entry for entry in entries if name in entry[2] and name in entry[3]])
    }
    for chart in list(drawn.values())[1:]:
        # The charts stand side by side and share the legend of the first.
        chart["layout"]["showlegend"] = False
    return drawn


def _figure(entries: Sequence[Entry], name: str, unit: str) -> Figure:
    unit, size = _SCALES.get(unit, (unit, 1.0))
    points = [(row[0], row[1], row[2][name] / size, row[3][name] / size) for row in entries]
    most = max(max(point[2:]) for point in points) or 1.0
    series = list(dict.fromkeys(point[0] for point in points))
    return figure(
        [
            _diagonal(most),
            *(
                _points([point for point in points if point[0] == series_name], place)
                for place, series_name in enumerate(series)
            ),
        ],
        xaxis=_axis(name, "approved", unit, most),
        yaxis=_axis(name, "measured", unit, most),
        margin={"l": 58, "r": 14, "t": 30, "b": 44},
        hovermode="closest",
        showlegend=len(series) > 1,
    )


def _points(points: Sequence[tuple[str, str, float, float]], place: int) -> Trace:
    return scatter(
        points[0][0],
        [point[2] for point in points],
        [point[3] for point in points],
        "markers",
        customdata=[[point[1]] for point in points],
        marker=dots(COLORS[place % len(COLORS)], place),
        hovertemplate="approved %{x:,.3~r}, measured %{y:,.3~r}",
        meta={"opens": True},
    )


def _diagonal(most: float) -> Trace:
    ends = [0, most * 1.05]
    look = {"color": "--line-strong", "width": 1, "dash": "dash"}
    return scatter("as approved", ends, ends, line=look, hoverinfo="skip", showlegend=False)


def _axis(name: str, title: str, unit: str, most: float) -> dict[str, Any]:
    # A share of a capacity is a percentage: “10m” is nothing to read.
    written = ".2~%" if name in _SHARES else "~s" if most >= THOUSAND else ".2~f"
    suffix, unit = ("B", "") if unit == "bytes" else ("", f", {unit}" if unit else "")
    return value_axis(
        f"{title}{unit}", range=[0, most * 1.08], tickformat=written, ticksuffix=suffix,
        automargin=True,
    )  # fmt: skip
