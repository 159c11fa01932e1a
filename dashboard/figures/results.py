"""The chart of a query's results: one aggregate by the start of its windows, a line per key."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dashboard.figures.parts import (
    COLORS,
    DASHES,
    Figure,
    Trace,
    figure,
    scatter,
    time_axis,
    value_axis,
)

_PREFIXED_FROM = 10_000
_AROUND_MS = 5 * 60_000
# Lines of fewer known points have dots.
_DOTTED = 12


class DrawnPoint(NamedTuple):
    """The value of a window; `start` in ms; `note`: how far it is an estimate, empty if exact."""

    start: int
    value: Any
    note: str = ""


def results_figure(lines: Mapping[str, Sequence[DrawnPoint]], label: str = "") -> Figure:
    """Draw the values of windows by key; an open circle marks what is not exact.

    `label`: the name of the values, "" if the lines have it.
    """
    traces = [_line(index, name, points) for index, (name, points) in enumerate(lines.items())]
    values = [value for points in lines.values() for _, value, _ in points if value is not None]
    # A prefix for what has four digits or more: "500m" for a half is not understood.
    written = "~s" if max(map(abs, values), default=0) >= _PREFIXED_FROM else ",.4~g"
    # Values far above 0 differ too little for an axis that begins there.
    is_near = 0 <= min(values, default=0) <= max(values, default=0) / 2
    mode = "tozero" if is_near else "normal"
    starts = [start for points in lines.values() for start, *_ in points]
    axis = time_axis()
    if starts and min(starts) == max(starts):
        # Around a single moment Plotly would label parts of a millisecond.
        axis["range"] = [starts[0] - _AROUND_MS, starts[0] + _AROUND_MS]
    return figure(
        traces,
        xaxis=axis,
        yaxis=value_axis(label, rangemode=mode, tickformat=written, automargin=True),
        margin={"l": 52, "r": 12, "t": 26, "b": 28},
        showlegend=True,
    )


def _line(index: int, name: str, points: Sequence[DrawnPoint]) -> Trace:
    look = {"width": 1.8, "color": COLORS[index % len(COLORS)], "dash": DASHES[index % len(DASHES)]}
    # A dot on each of many windows hides the line; a window alone, or an estimate, has one.
    known = [False, *(point.value is not None for point in points), False]
    # The points that a segment joins to one beside them.
    joined = (any(known[n : n + 3 : 2]) for n, is_known in enumerate(known[1:-1]) if is_known)
    is_dotted = sum(known) < _DOTTED or not all(joined) or any(point.note for point in points)
    return scatter(
        name,
        [point.start for point in points],
        [point.value for point in points],
        "lines+markers" if is_dotted else "lines",
        line=look,
        marker={
            "size": [7 if point.note else 4 for point in points],
            "symbol": ["circle-open" if point.note else "circle" for point in points],
        },
        text=[f", {point.note}" if point.note else "" for point in points],
        connectgaps=False,
        hovertemplate="%{y:,.4~g}%{text}",
    )
