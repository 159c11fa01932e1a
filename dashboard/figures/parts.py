"""Common parts of figures: axes, margins, hover labels, and what charts draw beside their lines.

These are limits, moments, intervals, names at ends, marks of plans, and the text without data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

Figure = dict[str, Any]
Trace = dict[str, Any]

COLORS = tuple(f"--chart-{number}" for number in range(1, 9))
# Symbols distinguish lines without colours, too; seven beside eight colours and three
# dashes: no two of the first 56 look alike.
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star")
DASHES = ("solid", "dash", "dot")
# A chart of about 1200 pixels shows no more points than this.
MAX_POINTS = 900
_TICKS = {
    "linecolor": "--line", "tickcolor": "--line", "ticks": "outside", "ticklen": 4,
    "zeroline": False,
}  # fmt: skip
CONFIG: dict[str, Any] = {"displayModeBar": False, "responsive": True, "doubleClick": "reset"}


# The opacity of the micro-batches below the mean of a minute.
FAINT: Final = 0.3


@dataclass(frozen=True)
class PlanMark:
    """An event that took effect at t (ms): its short label, a sentence, and the URL of its page."""

    t: int
    label: str
    text: str
    url: str = ""


def ms(moment: datetime) -> int:
    """Return a time in ms since the epoch, as axes have them."""
    return round(moment.timestamp() * 1000)


def fitted(shown: Sequence[float], first: float) -> list[float]:
    """Return a range of time (ms) that begins with its first value, but is not cut to nothing."""
    start, stop = shown
    return [max(start, min(first, stop - (stop - start) / 20)), stop]


def figure(data: Sequence[Trace], **layout: Any) -> Figure:
    """Return a figure with the layout that all charts share; keywords override it."""
    shared: dict[str, Any] = {
        "margin": {"l": 52, "r": 12, "t": 8, "b": 28},
        "paper_bgcolor": "--clear",
        "plot_bgcolor": "--clear",
        "font": {"family": "Inter Variable, system-ui, sans-serif", "size": 11, "color": "--muted"},
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
        **_TICKS,
        "type": "date",
        "showgrid": False,
        "nticks": 8,
        "tickangle": 0,
        # One line per tick, as fine as the zoom asks for.
        "tickformatstops": [
            {"dtickrange": [None, 59_999], "value": "%H:%M:%S"},
            {"dtickrange": [60_000, 43_199_999], "value": "%H:%M"},
            {"dtickrange": [43_200_000, None], "value": "%m-%d"},
        ],
        "hoverformat": "%Y-%m-%d %H:%M:%S",
    }


def number_axis(title: str, **more: Any) -> dict[str, Any]:
    """Return a horizontal axis of numbers with its title."""
    title_json = {"text": title, "standoff": 8, "font": {"size": 12}}
    return {**_TICKS, "title": title_json, "gridcolor": "--grid", **more}


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


def scatter(
    name: str, x: Sequence[Any], y: Sequence[Any], mode: str = "lines", **more: Any
) -> Trace:
    """Return points, joined by lines or not."""
    return {"type": "scatter", "mode": mode, "name": name, "x": list(x), "y": list(y)} | more


def dots(color: str, place: int, size: int = 8) -> dict[str, Any]:
    """Return the marker of the series at a place among all."""
    return {"color": color, "size": size, "symbol": SYMBOLS[place % len(SYMBOLS)]}


def line(
    name: str, field: str, samples: Sequence[dict[str, Any]], color: str, unit: str, **more: Any
) -> Trace:
    """Return one measure over time; missing values break the line."""
    drawn = scatter(
        name,
        [sample["t"] for sample in samples],
        [sample.get(field) for sample in samples],
        line={"color": color, "width": 1.6} | more.pop("line", {}),
        connectgaps=False,
        hovertemplate=f"%{{y:,.3~r}} {unit}".rstrip(),
        meta={"field": field},
    )
    return drawn | more


def limit_note(text: str, value: float) -> dict[str, Any]:
    """Return the words at a limit; static/js/limit-labels.js moves them off the data."""
    return {
        "name": "limit", "xref": "paper", "x": 0, "xanchor": "left", "y": value,
        "yanchor": "bottom", "text": text, "showarrow": False,
        "font": {"size": 11, "color": "--limit"},
    }  # fmt: skip


def plan_marks(marks: Sequence[PlanMark]) -> Trace:
    """Return a vertical line with a label per plan, or per exceeded limit.

    The lines are error bars of points on a second axis from 0 to 1: a live update adds points and
    leaves the layout alone.
    """
    return scatter("plans", [mark.t for mark in marks], [1.0] * len(marks), "text") | {
        "yaxis": "y2",
        "customdata": [[mark.label, mark.text, mark.url] for mark in marks],
        "text": [mark.label for mark in marks],
        "textposition": "top center",
        "textfont": {"size": 11, "color": "--muted"},
        "hovertemplate": "%{customdata[1]}<extra></extra>",
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0.0] * len(marks),
            "arrayminus": [1.0] * len(marks),
            "color": "--muted",
            "thickness": 1,
            "width": 0,
        },
        "cliponaxis": False,
        "showlegend": False,
        "meta": {"marks": True},
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


PlotlyShape = dict[str, Any]
_ACROSS: Final = {"xref": "paper", "x0": 0, "x1": 1}


def level(value: float, color: str = "--limit", dash: str = "dash") -> PlotlyShape:
    """Return a horizontal line over the whole width."""
    line = {"color": color, "width": 1.5, "dash": dash}
    return {"type": "line", "y0": value, "y1": value, "line": line, **_ACROSS}


def limit_shapes(limit: float | None, top: float) -> list[PlotlyShape]:
    """Return the line of a limit, and the shade of the side that it forbids, up to `top`."""
    if limit is None:
        return []
    shade = {
        "type": "rect", "y0": limit, "y1": max(top, limit), "line": {"width": 0},
        "fillcolor": "--bad", "opacity": 0.1, "layer": "below", **_ACROSS,
    }  # fmt: skip
    return [level(limit), shade]


def limit_notes(limit: float | None, form: str) -> list[PlotlyShape]:
    """Return the label of a limit at its line."""
    if limit is None:
        return []
    return [limit_note(f"limit {limit:{form}}".replace("%", " %"), limit)]


def vertical(x: float, color: str) -> PlotlyShape:
    """Return a vertical line over the whole height, such as that of a moment."""
    return {
        "type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1,
        "line": {"color": color, "width": 1, "dash": "dot"},
    }  # fmt: skip


def vertical_label(x: float, text: str, color: str) -> PlotlyShape:
    """Return the name of a vertical line, above it."""
    return {
        "x": x, "yref": "paper", "y": 1, "yanchor": "bottom", "text": text, "showarrow": False,
        "font": {"size": 11, "color": color},
    }  # fmt: skip


def end_label(value: float, text: str, color: str = "--ink") -> PlotlyShape:
    """Return a name at the right end of a line."""
    return {
        "xref": "paper", "x": 1, "xanchor": "left", "xshift": 5, "y": value, "text": text,
        "showarrow": False, "font": {"size": 11, "color": color},
    }  # fmt: skip


def interval(
    name: str, times: Sequence[Any], low: Sequence[Any], high: Sequence[Any], **look: Any
) -> list[Trace]:
    """Return an interval as a filled area: a lower line, and an upper one filled to it."""
    edge: dict[str, Any] = {"line": {"width": 0}, "hoverinfo": "skip", "connectgaps": False}
    return [
        scatter(f"{name}, low", times, low, **edge, showlegend=False),
        scatter(name, times, high, **edge | {"fill": "tonexty"} | look),
    ]


def without_values(text: str) -> Figure:
    """Return axes without values, and the reason."""
    note = {"text": text, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
    axes = {
        "xaxis": time_axis() | {"showticklabels": False},
        "yaxis": value_axis("", showticklabels=False, range=[0, 1]),
    }
    return figure([], annotations=[note], meta={"finding": text}, **axes)
