"""Figures of runs as SVG: a whole figure as a file, and a thumbnail for lists.

Lines are means over the seeds; whiskers reach from the smallest to the largest seed. A file has
colours of its own; a thumbnail has the classes of the style sheets, so it follows the theme.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from algorithms.lab.experiments import Axis, Experiment, Panel, Table, series_title, summarise
from controlplane.svg import LogScale, Scale, line, round_values

# Colours of the series in the light theme (static/css/tokens.css), with their dashes and shapes.
COLORS: Final = ("#1b5fc1", "#2195a8", "#451580", "#a04b78", "#2b323b", "#77573a")
_DASHES: Final = ("none", "6 4", "2 3")
WIDTH, HEIGHT = 860, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 190, 46, 54
THUMB_WIDTH, THUMB_HEIGHT = 160, 56
_TICKS: Final = 5


@dataclass(frozen=True)
class _Curve:
    """The values of a series by x: (x, mean, smallest, largest)."""

    series: str
    title: str
    place: int
    points: tuple[tuple[float, float, float, float], ...]


def thumbnail_svg(experiment: Experiment, table: Table) -> str:
    """Return a small drawing of the first panel, "" without values."""
    panel = experiment.panels[0]
    curves = _curves(experiment, panel, table)
    if not curves:
        return ""
    x_scale, y_scale = _scales(
        experiment.x, panel.y, curves, (4, THUMB_WIDTH - 4), (THUMB_HEIGHT - 4, 4)
    )
    lines = "".join(
        f'<path class="l s{1 + curve.place % len(COLORS)}" d="{_path(curve, x_scale, y_scale)}"/>'
        for curve in curves
    )
    label = f"{panel.y.label} by {experiment.x.label}"
    return (
        f'<svg class="thumb" role="img" aria-label="{escape(label)}"'
        f' viewBox="0 0 {THUMB_WIDTH} {THUMB_HEIGHT}" preserveAspectRatio="none">{lines}</svg>'
    )


def figure_svg(experiment: Experiment, panel: Panel, table: Table, note: str) -> str:
    """Return a standalone figure of one panel; `note`: a line below the title."""
    curves = _curves(experiment, panel, table)
    x_scale, y_scale = _scales(
        experiment.x, panel.y, curves, (_LEFT, WIDTH - _RIGHT), (HEIGHT - _BOTTOM, _TOP)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(experiment.title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(_LEFT, 20, experiment.title, 'font-weight="600" font-size="14" fill="#17202e"'),
        _text(_LEFT, 36, note, 'fill="#566173" font-size="11"'),
        *_axes(experiment.x, panel.y, curves, x_scale, y_scale),
        *(_drawn(curve, x_scale, y_scale) for curve in curves),
        *_legend(curves),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _curves(experiment: Experiment, panel: Panel, table: Table) -> list[_Curve]:
    x, logarithmic = experiment.x.name, panel.y.log
    rows: list[dict[str, Any]] = list(summarise(table, x, panel.y.name).records())
    names = list(dict.fromkeys(str(row["series"]) for row in rows))
    curves = []
    for name in names:
        points = tuple(
            (float(row[x]), float(row["mean"]), float(row["smallest"]), float(row["largest"]))
            for row in rows
            if row["series"] == name and _is_drawn(row, x, logarithmic=logarithmic)
        )
        place = experiment.choices.index(name) if name in experiment.choices else 0
        if points:
            title = series_title(experiment.planner, experiment.name, name)
            curves.append(_Curve(name, title, place, tuple(sorted(points))))
    return curves


def _is_drawn(row: Mapping[str, Any], x: str, *, logarithmic: bool) -> bool:
    is_number = isinstance(row["mean"], int | float) and isinstance(row[x], int | float)
    return is_number and (not logarithmic or row["smallest"] > 0)


def _scales(
    x: Axis, y: Axis, curves: Sequence[_Curve], across: tuple[int, int], up: tuple[int, int]
) -> tuple[Scale[float], Scale[float]]:
    xs = [point[0] for curve in curves for point in curve.points] or [0.0, 1.0]
    ys = [value for curve in curves for point in curve.points for value in point[2:]] or [0.0, 1.0]
    room = 0.0 if y.log else 0.04 * (max(ys) - min(ys)) or 0.5
    x_kind = LogScale if x.log and min(xs) > 0 else Scale
    y_kind = LogScale if y.log else Scale
    return x_kind(min(xs), max(xs), *across), y_kind(min(ys) - room, max(ys) + room, *up)


def _ticks(scale: Scale[float]) -> list[float]:
    """Return round values inside the axis."""
    low, high = scale.low, scale.high
    if not isinstance(scale, LogScale):
        return round_values(low, high, _TICKS)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 2 else (1,)  # noqa: PLR2004 - more would overlap
    values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    return [value for value in values if low <= value <= high] or [low]


def _path(curve: _Curve, x: Scale[float], y: Scale[float]) -> str:
    return line((x(point[0]), y(point[1])) for point in curve.points)


def _drawn(curve: _Curve, x: Scale[float], y: Scale[float]) -> str:
    color = COLORS[curve.place % len(COLORS)]
    dash = _DASHES[curve.place // len(COLORS) % len(_DASHES)]
    whiskers = "".join(
        f"M{x(at_x):.1f} {y(low):.1f}V{y(high):.1f}"
        for at_x, _, low, high in curve.points
        if high > low
    )
    dots = "".join(
        f'<circle cx="{x(point[0]):.1f}" cy="{y(point[1]):.1f}" r="3"/>' for point in curve.points
    )
    return (
        f'<g fill="none" stroke="{color}"><path stroke-width="1.8" stroke-dasharray="{dash}"'
        f' d="{_path(curve, x, y)}"/><path d="{whiskers}"/></g><g fill="{color}">{dots}</g>'
    )


def _axes(
    x: Axis, y: Axis, curves: Sequence[_Curve], across: Scale[float], up: Scale[float]
) -> list[str]:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    parts = [
        f'<path stroke="#e2e6ec" d="M{_LEFT} {up(value):.1f}H{right}"/>'
        + _text(_LEFT - 8, up(value) + 4, f"{value:,.4g}", 'text-anchor="end"')
        for value in _ticks(up)
    ]
    xs = sorted({point[0] for curve in curves for point in curve.points})
    shown = xs if len(xs) <= 9 else _ticks(across)  # noqa: PLR2004 - more would overlap
    parts += [
        _text(across(value), bottom + 18, f"{value:,.6g}", 'text-anchor="middle"')
        for value in shown
    ]
    middle = (_LEFT + right) / 2
    parts += [
        f'<path stroke="#868f9c" fill="none" d="M{_LEFT} {_TOP}V{bottom}H{right}"/>',
        _text(middle, HEIGHT - 14, _label(x), 'text-anchor="middle" fill="#566173"'),
        f'<text transform="rotate(-90)" x="{-(_TOP + bottom) / 2:.0f}" y="18" fill="#566173"'
        f' text-anchor="middle">{escape(_label(y))}</text>',
    ]
    return parts


def _legend(curves: Sequence[_Curve]) -> list[str]:
    left = WIDTH - _RIGHT + 16
    parts = []
    for place, curve in enumerate(curves):
        y = _TOP + 12 + 20 * place
        color = COLORS[curve.place % len(COLORS)]
        dash = _DASHES[curve.place // len(COLORS) % len(_DASHES)]
        parts.append(
            f'<path stroke="{color}" stroke-width="1.8" stroke-dasharray="{dash}"'
            f' d="M{left} {y}h22"/>' + _text(left + 28, y + 4, curve.title, "")
        )
    return parts


def _text(x: float, y: float, text: str, attributes: str) -> str:
    fill = "" if "fill=" in attributes else ' fill="#17202e"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}{fill}>{escape(text)}</text>'


def _label(axis: Axis) -> str:
    return f"{axis.label} ({axis.unit})" if axis.unit else axis.label
