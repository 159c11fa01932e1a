"""What charts draw beside their lines: limits, moments, intervals, names at ends, no data."""

from collections.abc import Sequence
from typing import Any, Final

from dashboard.figures.parts import (
    Figure,
    Trace,
    figure,
    limit_note,
    scatter,
    time_axis,
    value_axis,
)

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
