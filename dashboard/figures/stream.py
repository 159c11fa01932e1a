"""The charts of a stream: rates, forecast with interval, what is left for it, and lag."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from controlplane.models import Redirection
from controlplane.planners.admission.long_outlook import LongOutlook
from controlplane.planners.admission.outlook import RateForecast, StreamOutlook
from controlplane.telemetry.arrivals import LagPoint
from dashboard.figures.parts import (
    Figure,
    Trace,
    figure,
    fitted,
    interval,
    level,
    limit_note,
    ms,
    scatter,
    time_axis,
    value_axis,
    vertical,
    vertical_label,
    without_values,
)

# A limit that is further above the values is not drawn: it would flatten them.
_NEAR: Final = 4.0
# A line has two ends.
LEAST_POINTS: Final = 2
_HOVER: Final = {"hovertemplate": "%{y:,.3~r} /s"}
# The least height of the axis of the lag.
_LEAST_LAG_S: Final = 0.1


def rate_figure(
    outlook: StreamOutlook | LongOutlook | None, redirections: Sequence[Redirection]
) -> Figure:
    """Return the chart of past rates, and of the forecast with its interval and what is left.

    Without an outlook it is empty, with a note.
    """
    if outlook is None:
        return without_values("No record has arrived yet")
    first, now, last = outlook.starts[0], outlook.next_starts[0], outlook.next_starts[-1]
    shown = [row for row in redirections if first <= row.at <= last]
    if isinstance(outlook, StreamOutlook):
        ahead, left = outlook.expected, min(outlook.left) if outlook.left else None
    else:
        ahead, left = outlook.forecast, outlook.left
    return figure(
        [*_rates(outlook, ahead), *_left(outlook, left)],
        yaxis=value_axis("records/s"),
        xaxis=time_axis() | {"range": [ms(first), ms(last)]},
        shapes=[_ahead(now, last), *(vertical(ms(row.at), "--accent") for row in shown)],
        annotations=[*(_label(row) for row in shown), *_overload(outlook.overload_at, left)],
        margin={"l": 58, "r": 12, "t": 26, "b": 28},
        showlegend=True,
        meta={"finding": _finding(outlook.next_starts, ahead, left)},
    )


def lag_figures(
    points: Sequence[LagPoint], limit_s: float, shown: tuple[datetime, datetime]
) -> dict[str, Figure]:
    """Return the chart `lag`: the lag in the time range, against the limit if it is near."""
    known = [point.seconds for point in points if point.seconds is not None]
    if len(known) < LEAST_POINTS:
        return {"lag": without_values("Values appear with the first records")}
    highest = max(known)
    near = 0 < limit_s <= _NEAR * highest
    top = 1.15 * max(highest, limit_s if near else 0.0, _LEAST_LAG_S)
    times = [ms(point.time) for point in points]
    since = next(ms(point.time) for point in points if point.seconds is not None)
    drawn = scatter(
        "lag", times, [point.seconds for point in points], connectgaps=False,
        line={"color": "--series-1", "width": 1.6}, hovertemplate="%{y:,.3~r} s",
    )  # fmt: skip
    return {
        "lag": figure(
            [drawn],
            yaxis=value_axis("s", range=[0, top]),
            xaxis=time_axis() | {"range": fitted([ms(moment) for moment in shown], since)},
            shapes=[level(limit_s)] if near else [],
            annotations=[limit_note(f"limit {limit_s:g} s", limit_s)] if near else [],
            margin={"l": 52, "r": 12, "t": 8, "b": 28},
            meta={"finding": f"Lag {known[-1]:.3g} s, at most {highest:.3g} s"},
        )
    }


def _finding(starts: Sequence[datetime], ahead: Sequence[float], left: float | None) -> str:
    """Return what the chart of rates shows, as a sentence."""
    rate = max(ahead)
    when = starts[ahead.index(rate)]
    text = f"The highest forecast is {rate:,.4g} records/s at {when:%H:%M} UTC"
    return text if left is None else f"{text}; {left:,.4g} are left"


def _ahead(now: datetime, last: datetime) -> dict[str, Any]:
    """Return the shade of the time ahead."""
    return {
        "type": "rect", "xref": "x", "yref": "paper", "x0": ms(now), "x1": ms(last), "y0": 0,
        "y1": 1, "fillcolor": "--sunken", "opacity": 0.5, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip


def _overload(moment: datetime | None, left: float | None) -> list[dict[str, Any]]:
    """Return the label of the first time at which the forecast exceeds what is left."""
    if moment is None or left is None:
        return []
    return [
        {"text": f"! {moment:%H:%M}", "x": ms(moment), "y": left, "yanchor": "top",
         "showarrow": False, "bgcolor": "--bad", "borderpad": 2,
         "font": {"size": 11, "color": "--surface"}}
    ]  # fmt: skip


def _rates(outlook: RateForecast, ahead: Sequence[float]) -> list[Trace]:
    """Return the measured rates, the forecast, and its interval as a filled area."""
    measured = [ms(start) for start in outlook.starts]
    coming = [ms(start) for start in outlook.next_starts]
    # The forecast begins where the measured line ends.
    last = [rate for rate in outlook.rates[-1:] if rate is not None]
    coming = [*measured[-1:], *coming] if last else coming
    line = {"color": "--series-1", "width": 1.8}
    low, high = [*last, *outlook.low], [*last, *outlook.high]
    return [
        *interval("90 % interval", coming, low, high, fillcolor="--accent-soft"),
        scatter("measured", measured, outlook.rates, line=line, connectgaps=False, **_HOVER),
        scatter("forecast", coming, [*last, *ahead], line=line | {"dash": "dash"}, **_HOVER),
    ]


def _left(outlook: RateForecast, left: float | None) -> list[Trace]:
    """Return the line of what is left, if it is near the rates."""
    highest = max((*outlook.high, *(rate for rate in outlook.rates if rate is not None)))
    if left is None or left > _NEAR * highest:
        return []
    ends = [ms(outlook.starts[0]), ms(outlook.next_starts[-1])]
    drawn = {"color": "--limit", "width": 1.4, "dash": "dash"}
    return [scatter("left by the other streams", ends, [left, left], line=drawn, **_HOVER)]


def _label(row: Redirection) -> dict[str, Any]:
    label = vertical_label(ms(row.at), f"{row.source} → {row.target}", "--accent")
    return label | {"yanchor": "top", "xanchor": "left"}
