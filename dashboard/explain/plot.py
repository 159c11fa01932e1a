"""A small chart of an explanation, drawn by the server: a line, its limit, and the change.

Places are in per cent of the drawing, as the words beside it are not scaled.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from controlplane.explain.units import ValueUnit, quantity
from controlplane.explain.values import Series
from controlplane.svg import Scale, line, percent, round_values

WIDTH: Final = 1000
HEIGHT: Final = 200
# Space above the largest value.
_ROOM: Final = 1.12
_Y_TICKS: Final = 4
_X_TICKS: Final = 4
# A gap is at least so many of the usual distances between samples.
_GAP: Final = 4
# Rows of the table of a drawing, as of other charts.
_TABLE_ROWS: Final = 120


@dataclass(frozen=True)
class AxisLabel:
    """A word beside the drawing; `place`: in per cent of its height or width."""

    place: str
    text: str
    anchor: str = "middle"


@dataclass(frozen=True)
class PlotPoint:
    """A sample: its time in UTC and its value as texts, and its place in per cent."""

    time: str
    value: str
    x: str
    y: str


@dataclass(frozen=True)
class Plot:
    """The drawing: `path` in units of WIDTH x HEIGHT, ticks, and the words of limit and change.

    `limit`, `baseline`, `changed`, `point`: None if there is none. `limit_path`: the limit over
    time, a level unless it moved. `over`: top and height of the side that a fixed limit forbids,
    `baseline`: a height. `points`: the samples with values, the oldest first.
    """

    label: str
    path: str
    ys: Sequence[AxisLabel]
    xs: Sequence[AxisLabel]
    limit: AxisLabel | None = None
    limit_path: str = ""
    over: tuple[str, str] | None = None
    baseline: str | None = None
    changed: AxisLabel | None = None
    point: tuple[str, str] | None = None
    title: str = ""
    points: Sequence[PlotPoint] = ()

    @property
    def rows(self) -> Sequence[PlotPoint]:
        """Return the rows of the table: the newest samples, the newest first."""
        return self.points[: -_TABLE_ROWS - 1 : -1]


def plot_of(series: Series | None, finding: str) -> Plot | None:
    """Return the drawing of a series, None with fewer than two samples; `finding`: its label."""
    if series is None or len(series.times) < 2:  # noqa: PLR2004 - a line has two ends
        return None
    known = [value for value in series.values if value is not None]
    if not known:
        return None
    first, last = series.times[0], series.times[-1]
    limits = [limit for limit in (*series.limits, series.limit) if limit is not None]
    top = _ROOM * max(*known, *limits, 1e-9)
    x, y = Scale[float](first, last), Scale(top, 0.0)
    changed = series.changed_at if series.changed_at and first <= series.changed_at else None
    return Plot(
        label=f"{series.title}: {finding}",
        path=_path(series, x, y),
        ys=_y_ticks(top, y, series.unit),
        xs=_x_ticks(first, last, x),
        limit=None if series.limit is None else AxisLabel(
            y.percent(series.limit),
            f"{series.limit_title} {quantity(series.limit, series.unit)}",
        ),
        limit_path=_limit_path(series, x, y),
        over=None if series.limit is None or series.limits else _forbidden(
            y(series.limit), series.is_lower
        ),
        baseline=None if series.baseline is None else y.percent(series.baseline),
        changed=None if changed is None else AxisLabel(x.percent(changed), "change"),
        point=_point(series, x, y),
        title=series.title,
        points=list(_points(series, x, y)),
    )  # fmt: skip


def _forbidden(limit: float, is_lower: bool) -> tuple[str, str]:
    """Return top and height of the side of a limit whose values exceed it."""
    return (percent(limit), percent(1 - limit)) if is_lower else ("0%", percent(limit))


def _limit_path(series: Series, x: Scale[float], y: Scale[float]) -> str:
    """Return the limit as steps over the times, or as a level."""
    if series.limit is None:
        return ""
    limits = series.limits or [series.limit] * len(series.times)
    places: list[tuple[float, float]] = []
    for moment, limit in zip(series.times, limits, strict=True):
        if limit is not None:
            before = places[-1][1] if places else HEIGHT * y(limit)
            places += [(WIDTH * x(moment), before), (WIDTH * x(moment), HEIGHT * y(limit))]
    return line(places)


def _points(series: Series, x: Scale[float], y: Scale[float]) -> Iterator[PlotPoint]:
    """Yield the samples with values, in the order of time."""
    for moment, value in zip(series.times, series.values, strict=True):
        if value is not None:
            time = f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%d %H:%M:%S}"
            place = x.percent(moment), y.percent(max(value, 0.0))
            yield PlotPoint(time, quantity(value, series.unit), *place)


def _path(series: Series, x: Scale[float], y: Scale[float]) -> str:
    """Return the line, with a break where values are missing or samples are far apart."""
    steps = sorted(b - a for a, b in zip(series.times, series.times[1:], strict=False))
    gap = _GAP * max(steps[len(steps) // 2], 10_000)
    places: list[tuple[float, float | None]] = []
    last = series.times[0]
    for moment, value in zip(series.times, series.values, strict=True):
        if moment - last > gap:
            places.append((0.0, None))
        places.append((WIDTH * x(moment), None if value is None else HEIGHT * y(value)))
        last = moment
    return line(places)


def _point(series: Series, x: Scale[float], y: Scale[float]) -> tuple[str, str] | None:
    """Return the place of the sample nearest to the explained moment."""
    if series.explained_at is None:
        return None
    pairs = [
        (abs(moment - series.explained_at), moment, value)
        for moment, value in zip(series.times, series.values, strict=True)
        if value is not None
    ]
    _, moment, value = min(pairs)
    return x.percent(moment), y.percent(value)


def _y_ticks(top: float, y: Scale[float], unit: ValueUnit) -> list[AxisLabel]:
    return [
        AxisLabel(
            y.percent(value),
            quantity(value, unit).removesuffix(f" {unit}").replace(".0 ", " "),
            "end",
        )
        for value in round_values(0.0, top, _Y_TICKS)
    ]


def _x_ticks(first: int, last: int, x: Scale[float]) -> list[AxisLabel]:
    """Return times at full minutes, evenly spread."""
    length = last - first
    moments = [first + length * place // _X_TICKS for place in range(_X_TICKS + 1)]
    anchors = ["start", *["middle"] * (_X_TICKS - 1), "end"]
    return [
        AxisLabel(x.percent(moment), f"{datetime.fromtimestamp(moment / 1000, UTC):%H:%M}", anchor)
        for moment, anchor in zip(moments, anchors, strict=True)
    ]
