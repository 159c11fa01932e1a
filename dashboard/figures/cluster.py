"""The live charts of a cluster: latency, imbalance, replication factor and records.

A trace names its figure (`meta.field`); static/js/charts.js fills it with samples, so that they
are sent once for all charts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from controlplane import numbers
from controlplane.wire.figures import figure_of
from dashboard.figures.parts import (
    FAINT,
    Figure,
    PlanMark,
    Trace,
    figure,
    marks_axis,
    plan_marks,
    scatter,
    value_axis,
)
from dashboard.figures.parts import level as horizontal

_SECONDS: Final = 0.001
_BOLD: Final = 2.25
# Room for the words at the ends of the lines.
_MARGIN: Final = {"l": 44, "r": 64, "t": 24, "b": 26}
# More than any axis shows above its limit.
_BEYOND: Final = 10_000.0


@dataclass(frozen=True)
class ChartLimits:
    """The limits of the policy that do not move: latency in ms, imbalance as a ratio; None: none.

    `reachable`: the best replication factor that placement reaches.
    """

    latency_ms: float | None = None
    imbalance: float | None = None
    reachable: float | None = None


@dataclass(frozen=True)
class ChartLine:
    """A line of a chart: the name of its figure, its colour, the word at its end, and its dash.

    `minute`: also drawn as the mean of the last minute, as tiles show it, above the micro-batches.
    """

    name: str
    color: str
    word: str = ""
    dash: str = "solid"
    width: float = 1.4
    minute: bool = True

    @property
    def end(self) -> str:
        """Return the name of the figure whose newest value the word stands beside."""
        return f"minute_{self.name}" if self.minute else self.name


LATENCY: Final = (
    ChartLine("p50", "--series-2", "p50"),
    ChartLine("p95", "--series-1", "p95"),
    ChartLine("p99", "--series-4", "p99", "dash", minute=False),
)
RATES: Final = (
    ChartLine("arrived", "--series-1", "in"),
    ChartLine("delivered", "--series-4", "delivered", "dash"),
)


def cluster_figures(
    limits: ChartLimits, marks: Sequence[PlanMark], *, minutes: bool = True
) -> dict[str, Figure]:
    """Return every chart of the cluster page by its name, without samples.

    `minutes`: with the means of a minute, which samples of a minute or more do not have.
    """
    draw = partial(_over_time, marks, minutes=minutes)
    return {
        "latency": latency(limits, draw),
        "imbalance": imbalance(limits, draw),
        "replication": replication(limits, draw),
        "rates": rates(draw),
    }


def latency(limits: ChartLimits, draw: Callable[..., Figure]) -> Figure:
    """Return the chart of the percentiles of the time from the log to the result, in s."""
    value = None if limits.latency_ms is None else limits.latency_ms * _SECONDS
    shapes = forbidden(value, f"limit for p95: {numbers.milliseconds(limits.latency_ms)}")
    axis = value_axis("", ticksuffix=" s")
    return draw(LATENCY, axis, shapes, scale=_SECONDS, hover="%{y:.2f} s")


def imbalance(limits: ChartLimits, draw: Callable[..., Figure]) -> Figure:
    """Return the chart of the fullest node's load over capacity, minus the mean over nodes."""
    shapes = forbidden(limits.imbalance, f"limit {numbers.percent(limits.imbalance)}")
    lines = (ChartLine("imbalance", "--series-1"),)
    axis = value_axis("", tickformat=".0%")
    return draw(lines, axis, shapes, hover="%{y:.1%}")


def replication(limits: ChartLimits, draw: Callable[..., Figure]) -> Figure:
    """Return the chart of delivered over read records, with its limit and what is reachable."""
    best = limits.reachable
    shapes = (
        []
        if best is None
        else [level(best, "--muted", "dot", f"best reachable {numbers.ratio(best)}")]
    )
    # The limit follows what is reachable: each time has its own.
    lines = (
        ChartLine("rf", "--series-1", "measured"),
        ChartLine("rf_limit", "--limit", "limit", "dash", minute=False),
    )
    axis = value_axis("", rangemode="normal", minallowed=0)
    return draw(lines, axis, shapes, hover="%{y:.3f}", floor=1.0)


def rates(draw: Callable[..., Figure]) -> Figure:
    """Return the chart of the records/s that arrive, and of the deliveries/s to nodes."""
    return draw(RATES, value_axis(""), (), hover="%{y:,.3~r}/s")


def forbidden(limit: float | None, text: str) -> list[dict[str, Any]]:
    """Return the labelled limit, with the forbidden side shaded; nothing without a limit."""
    if limit is None:
        return []
    shade: dict[str, Any] = {
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": limit, "y1": _BEYOND * limit,
        "fillcolor": "--bad-soft", "line": {"width": 0}, "layer": "below",
    }  # fmt: skip
    return [shade, level(limit, "--limit", "dash", text)]


def level(value: float, color: str, dash: str, text: str) -> dict[str, Any]:
    """Return a horizontal line over the whole width, with its name.

    static/js/limit-labels.js chooses where the name stands.
    """
    label = {"text": text, "font": {"size": 11, "color": color}}
    return horizontal(value, color, dash) | {"layer": "below", "label": label}


def _over_time(
    marks: Sequence[PlanMark],
    lines: Sequence[ChartLine],
    axis: dict[str, Any],
    shapes: Sequence[dict[str, Any]] = (),
    *,
    minutes: bool,
    hover: str,
    scale: float = 1.0,
    floor: float = 0.0,
) -> Figure:
    """Return a chart of lines over time; `floor`: where the axis starts."""
    if not minutes:
        lines = [
            replace(line, minute=False, width=_BOLD if line.minute else line.width)
            for line in lines
        ]
    drawn = [trace for line in lines for trace in _traces(line, hover, scale)]
    # The highest line of the axis is the limit, unless the values are far from it.
    levels = [shape["y0"] for shape in shapes if shape["type"] == "line"]
    return figure(
        [*drawn, _ends(lines, scale), plan_marks(marks)],
        yaxis=axis | {"fixedrange": True},
        yaxis2=marks_axis(),
        shapes=list(shapes),
        showlegend=False,
        margin=_MARGIN,
        meta={"levels": levels, "floor": floor},
        dragmode="zoom",
    )


def _traces(line: ChartLine, hover: str, scale: float) -> list[Trace]:
    """Return the micro-batches of a line, faint below the mean of a minute if there is one."""
    declared = figure_of(line.name)
    title = declared.label or declared.title
    drawn = scatter(title, [], []) | {
        "line": {"color": line.color, "width": line.width, "dash": line.dash},
        "connectgaps": False,
        "hovertemplate": hover,
        "meta": {"field": line.name, "scale": scale},
    }
    if not line.minute:
        return [drawn]
    bold = drawn | {
        "name": f"{title}, mean of a minute",
        "line": drawn["line"] | {"width": _BOLD},
        "meta": {"field": line.end, "scale": scale},
    }
    return [drawn | {"opacity": FAINT, "line": drawn["line"] | {"dash": "solid", "width": 1}}, bold]


def _ends(lines: Sequence[ChartLine], scale: float) -> Trace:
    """Return the words at the ends of the lines."""
    return scatter("ends", [], [], "text") | {
        "text": [],
        "textposition": "middle right",
        "textfont": {"size": 11, "color": [line.color for line in lines]},
        "hoverinfo": "skip",
        "cliponaxis": False,
        "showlegend": False,
        "meta": {
            "ends": [line.end for line in lines],
            "words": [line.word for line in lines],
            "scale": scale,
        },
    }
