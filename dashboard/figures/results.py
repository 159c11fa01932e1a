"""What a query has found: one chart per stream, a point per window."""

from collections.abc import Sequence

from controlplane.wire.results import WindowResult
from dashboard.figures.parts import Figure, Trace, figure, value_axis
from dashboard.numbers import KMH_PER_CMS

SPEED = "speed"


def unit_of(value: str) -> str:
    """Return the unit in which a record column is shown; speeds arrive in cm/s."""
    return "km/h" if value == SPEED else "m"


def shown(value: str, number: float | None) -> float | None:
    """Return a value of a record column in the unit it is shown in."""
    if number is None:
        return None
    return number * KMH_PER_CMS if value == SPEED else number


def tile_figure(windows: Sequence[WindowResult], value: str) -> Figure:
    """Draw count as bars, mean and maximum as lines, over the begin of each window."""
    ordered = sorted(windows, key=lambda window: window.window_start_ms)
    moments = [window.window_start_ms for window in ordered]
    unit = unit_of(value)
    means = [shown(value, window.mean) for window in ordered]
    most = [shown(value, window.maximum) for window in ordered]
    count: Trace = {
        "type": "bar",
        "name": "records",
        "x": moments,
        "y": [window.count for window in ordered],
        "marker": {"color": "--count"},
        "hovertemplate": "%{y:,}",
    }
    return figure(
        [
            count,
            _line(f"mean {value}", moments, means, "--chart-1", unit, "solid"),
            _line(f"maximum {value}", moments, most, "--chart-2", unit, "dot"),
        ],
        # The lines' axis lies over the bars', so that no bar hides a line.
        yaxis=value_axis("records", side="right", showgrid=False),
        yaxis2=value_axis(unit, overlaying="y", side="left", tickmode="auto"),
        margin={"l": 48, "r": 48, "t": 26, "b": 28},
    )


def _line(
    name: str, x: Sequence[int], y: Sequence[float | None], color: str, unit: str, dash: str
) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "yaxis": "y2",
        "name": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": color, "width": 1.8, "dash": dash},
        "marker": {"size": 4},
        "connectgaps": False,
        "hovertemplate": f"%{{y:.1f}} {unit}",
    }
