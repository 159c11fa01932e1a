"""What was promised against what was measured: points on the diagonal were true."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.figures.lab import COLORS, SYMBOLS
from dashboard.figures.parts import Figure, Trace, figure, value_axis

# An entry: its planner and algorithm, the proposal's page, predicted and measured.
Entry = tuple[str, str, Mapping[str, float], Mapping[str, float]]

THOUSAND = 1000


def ledger_figures(entries: Sequence[Entry], figures: Mapping[str, str]) -> dict[str, Figure]:
    """Return one figure per measure that some entry has both of; figures: its unit by name."""
    drawn = {
        name: _figure(known, name, unit)
        for name, unit in figures.items()
        if (known := [one for one in entries if name in one[2] and name in one[3]])
    }
    for one in list(drawn.values())[1:]:
        # The charts stand side by side and share the legend of the first.
        one["layout"]["showlegend"] = False
    return drawn


def _figure(entries: Sequence[Entry], name: str, unit: str) -> Figure:
    most = max(max(one[2][name], one[3][name]) for one in entries) or 1.0
    series = list(dict.fromkeys(one[0] for one in entries))
    return figure(
        [
            _diagonal(most),
            *(_points(entries, place, one, name) for place, one in enumerate(series)),
        ],
        xaxis=_axis(f"predicted {unit}".strip(), most),
        yaxis=_axis(f"measured {unit}".strip(), most),
        margin={"l": 58, "r": 14, "t": 30, "b": 44},
        hovermode="closest",
        showlegend=len(series) > 1,
    )


def _points(entries: Sequence[Entry], place: int, series: str, name: str) -> Trace:
    mine = [one for one in entries if one[0] == series]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": series,
        "x": [one[2][name] for one in mine],
        "y": [one[3][name] for one in mine],
        "customdata": [[one[1]] for one in mine],
        "marker": {
            "color": COLORS[place % len(COLORS)],
            "size": 8,
            "symbol": SYMBOLS[place % len(SYMBOLS)],
        },
        "hovertemplate": "predicted %{x:,.3~r}, measured %{y:,.3~r}",
        "meta": {"opens": True},
    }


def _diagonal(most: float) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "as predicted",
        "x": [0, most * 1.05],
        "y": [0, most * 1.05],
        "line": {"color": "--line-strong", "width": 1, "dash": "dash"},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _axis(title: str, most: float) -> dict[str, Any]:
    # An imbalance is a share of a capacity: “10m” is nothing to read.
    written = "~s" if most >= THOUSAND else ".2~f" if most >= 1 else ".2~%"
    return value_axis(title, range=[0, most * 1.08], tickformat=written, automargin=True)
