"""The charts of a stream: rates, forecast with interval, what is left for it, and lag."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from controlplane.models import Redirection
from controlplane.planners.admission.long_outlook import LongOutlook
from controlplane.planners.admission.outlook import StreamOutlook
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
# The least height of the axis of the lag.
_LEAST_LAG_S: Final = 0.1


def rate_figures(
    outlook: StreamOutlook | None, redirections: Sequence[Redirection]
) -> dict[str, Figure]:
    """Return the chart `rate`; without an outlook it is empty, with a note."""
    if outlook is None:
        return {"rate": without_values("No record has arrived yet")}
    traces = [*_interval(outlook), *_rates(outlook), *_left(outlook)]
    first, last = outlook.starts[0], outlook.next_starts[-1]
    shown = [row for row in redirections if first <= row.at <= last]
    return {
        "rate": figure(
            traces,
            yaxis=value_axis("records/s"),
            xaxis=time_axis() | {"range": [ms(first), ms(last)]},
            shapes=[
                vertical(ms(outlook.next_starts[0]), "--line-strong"),
                *(vertical(ms(row.at), "--accent") for row in shown),
            ],
            annotations=[_label(row) for row in shown],
            margin={"l": 58, "r": 12, "t": 26, "b": 28},
            showlegend=True,
        )
    }


def long_figures(outlook: LongOutlook, redirections: Sequence[Redirection]) -> dict[str, Figure]:
    """Return the chart `hours`: past hours, and the forecast of the next periods or hour."""
    first, last = outlook.starts[0], outlook.next_starts[-1]
    shown = [row for row in redirections if first <= row.at <= last]
    now = outlook.next_starts[0]
    return {
        "hours": figure(
            [*_long_rates(outlook), *_long_limit(outlook)],
            yaxis=value_axis("records/s"),
            xaxis=time_axis() | {"range": [ms(first), ms(last)]},
            shapes=[_ahead(now, last), *(vertical(ms(row.at), "--accent") for row in shown)],
            annotations=[*(_label(row) for row in shown), *_overload(outlook)],
            margin={"l": 58, "r": 12, "t": 26, "b": 28},
            showlegend=True,
            meta={"finding": _finding(outlook)},
        )
    }


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


def _finding(outlook: LongOutlook) -> str:
    """Return what the chart of hours shows, as a sentence."""
    place = outlook.forecast.index(max(outlook.forecast))
    when, rate = outlook.next_starts[place], outlook.forecast[place]
    text = f"The highest forecast is {rate:,.4g} records/s at {when:%H:%M} UTC"
    return text if outlook.left is None else f"{text}; {outlook.left:,.4g} are left"


def _ahead(now: datetime, last: datetime) -> dict[str, Any]:
    """Return the shade of the time ahead."""
    return {
        "type": "rect", "xref": "x", "yref": "paper", "x0": ms(now), "x1": ms(last), "y0": 0,
        "y1": 1, "fillcolor": "--sunken", "opacity": 0.5, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip


def _overload(outlook: LongOutlook) -> list[dict[str, Any]]:
    """Return the label of the first time at which the forecast exceeds what is left."""
    moment = outlook.overload_at
    if moment is None or outlook.left is None:
        return []
    return [
        {"text": f"! {moment:%H:%M}", "x": ms(moment), "y": outlook.left, "yanchor": "top",
         "showarrow": False, "bgcolor": "--bad", "borderpad": 2,
         "font": {"size": 11, "color": "--surface"}}
    ]  # fmt: skip


def _long_rates(outlook: LongOutlook) -> list[Trace]:
    """Return the means, the forecast, and its interval as a filled area."""
    measured = [ms(start) for start in outlook.starts]
    coming = [ms(start) for start in outlook.next_starts]
    # The forecast begins where the measured line ends.
    last = [rate for rate in outlook.rates[-1:] if rate is not None]
    coming = [*measured[-1:], *coming] if last else coming
    hover = {"hovertemplate": "%{y:,.3~r} /s"}
    line = {"color": "--series-1", "width": 1.8}
    low, high = [*last, *outlook.low], [*last, *outlook.high]
    return [
        *interval("90 % interval", coming, low, high, fillcolor="--accent-soft"),
        scatter("measured", measured, outlook.rates, line=line, connectgaps=False, **hover),
        scatter("forecast", coming, [*last, *outlook.forecast], line=line | {"dash": "dash"},
                **hover),
    ]  # fmt: skip


def _long_limit(outlook: LongOutlook) -> list[Trace]:
    """Return the line of what is left, if it is near the rates."""
    highest = max((*outlook.high, *(rate for rate in outlook.rates if rate is not None)))
    if outlook.left is None or outlook.left > _NEAR * highest:
        return []
    ends = [ms(outlook.starts[0]), ms(outlook.next_starts[-1])]
    drawn = {"color": "--limit", "width": 1.4, "dash": "dash"}
    return [
        scatter("left by the other streams", ends, [outlook.left, outlook.left], line=drawn,
                hovertemplate="%{y:,.3~r} /s")
    ]  # fmt: skip


def _rates(outlook: StreamOutlook) -> list[Trace]:
    known = [ms(start) for start in outlook.starts]
    coming = [ms(start) for start in outlook.next_starts]
    hover = {"hovertemplate": "%{y:,.3~r} /s"}
    return [
        scatter("measured", known, outlook.rates, line={"color": "--chart-1", "width": 1.8},
                connectgaps=False, **hover),
        scatter("expected", coming, outlook.expected,
                line={"color": "--chart-1", "width": 1.8, "dash": "dash"}, **hover),
    ]  # fmt: skip


def _interval(outlook: StreamOutlook) -> list[Trace]:
    coming = [ms(start) for start in outlook.next_starts]
    look = {"fillcolor": "--accent-soft"}
    return interval("90 % interval", coming, outlook.low, outlook.high, **look)


def _left(outlook: StreamOutlook) -> list[Trace]:
    if outlook.left is None:
        return []
    coming = [ms(start) for start in outlook.next_starts]
    drawn = {"color": "--bad", "width": 1.4, "dash": "dot"}
    highest = max((*outlook.high, *(rate for rate in outlook.rates if rate is not None)))
    # Far above the rates it would flatten them: it is drawn when its legend is clicked.
    near = min(outlook.left) <= _NEAR * highest
    return [
        scatter("left by the other streams", coming, outlook.left, line=drawn,
                hovertemplate="%{y:,.3~r} /s", visible=True if near else "legendonly")
    ]  # fmt: skip


def _label(row: Redirection) -> dict[str, Any]:
    label = vertical_label(ms(row.at), f"{row.source} → {row.target}", "--accent")
    return label | {"yanchor": "top", "xanchor": "left"}
