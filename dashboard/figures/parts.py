"""Common parts of figures: axes, margins, hover labels, marks of routing versions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Figure = dict[str, Any]
Trace = dict[str, Any]

# Height of the version numbers on the axis of the marks; static/js/charts.js keeps it.
LABELS_AT = 0.94
CONFIG: dict[str, Any] = {"displayModeBar": False, "responsive": True, "doubleClick": "reset"}


@dataclass(frozen=True)
class VersionMark:
    """A routing version that took effect at t (ms); proposal: the id of its proposal."""

    t: int
    version: int
    text: str
    proposal: int | None = None


def figure(data: Sequence[Trace], **layout: Any) -> Figure:
    """Return a figure with the layout that all charts share; keywords override it."""
    shared: dict[str, Any] = {
        "margin": {"l": 52, "r": 12, "t": 8, "b": 28},
        "paper_bgcolor": "--clear",
        "plot_bgcolor": "--clear",
        "font": {"family": "system-ui, sans-serif", "size": 11, "color": "--muted"},
        "hovermode": "x unified",
        "hoverlabel": {
            "bgcolor": "--raised",
            "bordercolor": "--line",
            "font": {"size": 12, "color": "--ink"},
        },
        "showlegend": len(data) > 1,
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        # A person's zoom survives the next sample.
        "uirevision": "kept",
        "xaxis": time_axis(),
        "yaxis": value_axis(""),
    }
    return {"data": list(data), "layout": shared | layout, "config": CONFIG}


def time_axis() -> dict[str, Any]:
    """Return an axis of moments (ms since the epoch, UTC)."""
    return {
        "type": "date",
        "showgrid": False,
        "zeroline": False,
        "linecolor": "--line",
        "tickcolor": "--line",
        "ticks": "outside",
        "ticklen": 4,
        "nticks": 6,
        "tickangle": 0,
        # One line per tick, as fine as the zoom asks for.
        "tickformatstops": [
            {"dtickrange": [None, 59_999], "value": "%H:%M:%S"},
            {"dtickrange": [60_000, 43_199_999], "value": "%H:%M"},
            {"dtickrange": [43_200_000, None], "value": "%d %b"},
        ],
        "hoverformat": "%d %b %H:%M:%S",
    }


def category_axis() -> dict[str, Any]:
    """Return an axis of names."""
    return {
        "type": "category",
        "linecolor": "--line",
        "showgrid": False,
        "tickfont": {"size": 10},
        "automargin": True,
    }


def value_axis(unit: str, **more: Any) -> dict[str, Any]:
    """Return an axis of values from 0 on, with its unit as the title."""
    axis: dict[str, Any] = {
        "title": {"text": unit, "standoff": 6, "font": {"size": 11}},
        "rangemode": "tozero",
        "gridcolor": "--grid",
        "zeroline": False,
        "nticks": 5,
        "automargin": False,
    }
    return axis | more


def line(
    name: str, field: str, samples: Sequence[dict[str, Any]], color: str, unit: str, **more: Any
) -> Trace:
    """Return one measure over time; missing values break the line."""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [sample["t"] for sample in samples],
        "y": [sample.get(field) for sample in samples],
        "line": {"color": color, "width": 1.6} | more.pop("line", {}),
        "connectgaps": False,
        "hovertemplate": f"%{{y:,.3~r}} {unit}".rstrip(),
        "meta": {"field": field},
    } | more


def version_marks(marks: Sequence[VersionMark]) -> Trace:
    """Return a vertical line per routing version, over the whole height for those of proposals.

    The lines are error bars of points on a second axis from 0 to 1: a live update adds points and
    leaves the layout alone.
    """
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "routing",
        "x": [mark.t for mark in marks],
        "y": [1.0] * len(marks),
        "yaxis": "y2",
        "customdata": [[mark.version, mark.text, mark.proposal] for mark in marks],
        "hovertemplate": "v%{customdata[0]}: %{customdata[1]}<extra></extra>",
        "marker": {
            "symbol": "triangle-down",
            "size": [7 if mark.proposal else 0 for mark in marks],
            "color": "--accent",
        },
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0.0] * len(marks),
            "arrayminus": [1.0 if mark.proposal else 0.06 for mark in marks],
            "color": "--accent",
            "thickness": 1,
            "width": 0,
        },
        "cliponaxis": False,
        "showlegend": False,
        "meta": {"marks": True},
    }


def version_labels(marks: Sequence[VersionMark]) -> Trace:
    """Return the labels of the versions of proposals.

    A trace of their own: Plotly loses texts on updates where some of a trace's texts are empty.
    """
    shown = [mark for mark in marks if mark.proposal]
    return {
        "type": "scatter",
        "mode": "text",
        "name": "proposals",
        "x": [mark.t for mark in shown],
        # Below the short ticks of the other versions.
        "y": [LABELS_AT] * len(shown),
        "yaxis": "y2",
        "text": [f"v{mark.version}" for mark in shown],
        "textposition": "bottom right",
        "textfont": {"size": 11, "color": "--accent"},
        "hoverinfo": "skip",
        "cliponaxis": False,
        "showlegend": False,
        "meta": {"labels": True},
    }


def marks_axis() -> dict[str, Any]:
    """Return the invisible axis (0 to 1) of `version_marks`."""
    return {
        "overlaying": "y",
        "range": [0, 1],
        "visible": False,
        "fixedrange": True,
        "side": "right",
    }
