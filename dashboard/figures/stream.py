"""The chart of a stream: past rates, forecast with interval, what is left for it, redirections."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from controlplane.admission.outlook import StreamOutlook
from controlplane.admission.stream_report import LongOutlook
from controlplane.models import Redirection
from dashboard.figures.parts import Figure, Trace, figure, scatter, time_axis, value_axis

_NEAR: Final = 4.0


def rate_figures(
    outlook: StreamOutlook | None, redirections: Sequence[Redirection]
) -> dict[str, Figure]:
    """Return the chart `rate`; without an outlook it is empty, with a note."""
    if outlook is None:
        empty = _note("No record has arrived yet")
        return {"rate": figure([], annotations=[empty], yaxis=value_axis("records/s"))}
    traces = [*_interval(outlook), *_rates(outlook), *_left(outlook)]
    first, last = outlook.starts[0], outlook.next_starts[-1]
    shown = [row for row in redirections if first <= row.at <= last]
    return {
        "rate": figure(
            traces,
            yaxis=value_axis("records/s"),
            xaxis=time_axis() | {"range": [_ms(first), _ms(last)]},
            shapes=[*_now(outlook), *(_vertical(row.at, "--accent") for row in shown)],
            annotations=[_label(row) for row in shown],
            margin={"l": 58, "r": 12, "t": 26, "b": 28},
            showlegend=True,
        )
    }


def long_figures(
    outlook: LongOutlook | None, redirections: Sequence[Redirection]
) -> dict[str, Figure]:
    """Return the chart `hours`: six past hours and the forecast of the next one."""
    if outlook is None:
        note = _note("The first mean of five minutes is missing")
        return {"hours": figure([], annotations=[note], yaxis=value_axis("records/s"))}
    first, last = outlook.starts[0], outlook.next_starts[-1]
    shown = [row for row in redirections if first <= row.at <= last]
    now = _vertical(outlook.next_starts[0], "--line-strong")
    return {
        "hours": figure(
            [*_long_rates(outlook), *_long_limit(outlook)],
            yaxis=value_axis("records/s"),
            xaxis=time_axis() | {"range": [_ms(first), _ms(last)]},
            shapes=[now, *(_vertical(row.at, "--accent") for row in shown)],
            annotations=[_label(row) for row in shown],
            margin={"l": 58, "r": 12, "t": 26, "b": 28},
            showlegend=True,
        )
    }


def _long_rates(outlook: LongOutlook) -> list[Trace]:
    """Return the means, the forecast, and its interval as a filled area."""
    measured = [_ms(start) for start in outlook.starts]
    coming = [_ms(start) for start in outlook.next_starts]
    hover = {"hovertemplate": "%{y:,.3~r} /s"}
    line = {"color": "--series-1", "width": 1.8}
    hidden: dict[str, Any] = {"line": {"width": 0}, "hoverinfo": "skip"}
    return [
        scatter("low", coming, outlook.low, showlegend=False, **hidden),
        scatter("90 % interval", coming, outlook.high, fill="tonexty",
                fillcolor="--accent-soft", **hidden),
        scatter("measured", measured, outlook.rates, line=line, connectgaps=False, **hover),
        scatter("forecast", coming, outlook.forecast, line=line | {"dash": "dash"}, **hover),
    ]  # fmt: skip


def _long_limit(outlook: LongOutlook) -> list[Trace]:
    """Return the line of what is left, if it is near the rates."""
    highest = max((*outlook.high, *(rate for rate in outlook.rates if rate is not None)))
    if outlook.left is None or outlook.left > _NEAR * highest:
        return []
    ends = [_ms(outlook.starts[0]), _ms(outlook.next_starts[-1])]
    drawn = {"color": "--limit", "width": 1.4, "dash": "dash"}
    return [
        scatter("left by the other streams", ends, [outlook.left, outlook.left], line=drawn,
                hovertemplate="%{y:,.3~r} /s")
    ]  # fmt: skip


def _note(text: str) -> dict[str, Any]:
    return {"text": text, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}


def _rates(outlook: StreamOutlook) -> list[Trace]:
    known = [_ms(start) for start in outlook.starts]
    coming = [_ms(start) for start in outlook.next_starts]
    hover = {"hovertemplate": "%{y:,.3~r} /s"}
    return [
        scatter("measured", known, outlook.rates, line={"color": "--chart-1", "width": 1.8},
                connectgaps=False, **hover),
        scatter("expected", coming, outlook.expected,
                line={"color": "--chart-1", "width": 1.8, "dash": "dash"}, **hover),
    ]  # fmt: skip


def _interval(outlook: StreamOutlook) -> list[Trace]:
    """Return the interval of 90 % as a filled area: a lower line, and an upper one filled to it."""
    coming = [_ms(start) for start in outlook.next_starts]
    hidden: dict[str, Any] = {"line": {"width": 0}, "hoverinfo": "skip"}
    return [
        scatter("low", coming, outlook.low, showlegend=False, **hidden),
        scatter("90 % interval", coming, outlook.high, fill="tonexty",
                fillcolor="--accent-soft", **hidden),
    ]  # fmt: skip


def _left(outlook: StreamOutlook) -> list[Trace]:
    if outlook.left is None:
        return []
    coming = [_ms(start) for start in outlook.next_starts]
    drawn = {"color": "--bad", "width": 1.4, "dash": "dot"}
    highest = max((*outlook.high, *(rate for rate in outlook.rates if rate is not None)))
    # Far above the rates it would flatten them: it is drawn when its legend is clicked.
    near = min(outlook.left) <= _NEAR * highest
    return [
        scatter("left by the other streams", coming, outlook.left, line=drawn,
                hovertemplate="%{y:,.3~r} /s", visible=True if near else "legendonly")
    ]  # fmt: skip


def _now(outlook: StreamOutlook) -> list[dict[str, Any]]:
    return [_vertical(outlook.next_starts[0], "--line-strong")]


def _vertical(moment: datetime, color: str) -> dict[str, Any]:
    return {
        "type": "line", "xref": "x", "yref": "paper", "x0": _ms(moment), "x1": _ms(moment),
        "y0": 0, "y1": 1, "line": {"color": color, "width": 1, "dash": "dot"},
    }  # fmt: skip


def _label(row: Redirection) -> dict[str, Any]:
    return {
        "text": f"{row.source} → {row.target}", "x": _ms(row.at), "y": 1, "yref": "paper",
        "yanchor": "top", "xanchor": "left", "showarrow": False,
        "font": {"size": 11, "color": "--accent"},
    }  # fmt: skip


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
