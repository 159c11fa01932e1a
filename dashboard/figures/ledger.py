"""Figures of the ledger: predicted against measured values."""

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.planning.measures import FULLEST, IMBALANCE
from dashboard.figures.parts import COLORS, Figure, Trace, dots, figure, scatter, value_axis

# An entry: its planner and algorithm, the proposal's page, predicted and measured.
Entry = tuple[str, str, Mapping[str, float], Mapping[str, float]]

THOUSAND = 1000
_SHARES = frozenset({IMBALANCE.name, FULLEST.name})


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
    most = max(max(series_name[2][name], series_name[3][name]) for series_name in entries) or 1.0
    series = list(dict.fromkeys(series_name[0] for series_name in entries))
    return figure(
        [
            _diagonal(most),
            *(
                _points(entries, place, series_name, name)
                for place, series_name in enumerate(series)
            ),
        ],
        xaxis=_axis(name, f"predicted {unit}".strip(), most),
        yaxis=_axis(name, f"measured {unit}".strip(), most),
        margin={"l": 58, "r": 14, "t": 30, "b": 44},
        hovermode="closest",
        showlegend=len(series) > 1,
    )


def _points(entries: Sequence[Entry], place: int, series: str, name: str) -> Trace:
    selected = [entry for entry in entries if entry[0] == series]
    return scatter(
        series,
        [entry[2][name] for entry in selected],
        [entry[3][name] for entry in selected],
        "markers",
        customdata=[[entry[1]] for entry in selected],
        marker=dots(COLORS[place % len(COLORS)], place),
        hovertemplate="predicted %{x:,.3~r}, measured %{y:,.3~r}",
        meta={"opens": True},
    )


def _diagonal(most: float) -> Trace:
    ends = [0, most * 1.05]
    look = {"color": "--line-strong", "width": 1, "dash": "dash"}
    return scatter("as predicted", ends, ends, line=look, hoverinfo="skip", showlegend=False)


def _axis(name: str, title: str, most: float) -> dict[str, Any]:
    # A share of a capacity is a percentage: “10m” is nothing to read.
    written = ".2~%" if name in _SHARES else "~s" if most >= THOUSAND else ".2~f"
    return value_axis(title, range=[0, most * 1.08], tickformat=written, automargin=True)
