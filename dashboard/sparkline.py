"""Sparklines as inline SVG."""

from collections.abc import Sequence

from django.utils.html import format_html
from django.utils.safestring import SafeString

WIDTH, HEIGHT, MARGIN = 120, 28, 2
# More points than half the pixels are indistinguishable.
MAX_POINTS = 60


def sparkline(values: Sequence[float | None], label: str) -> SafeString:
    """Return the SVG of the values from left to right, "" for fewer than two."""
    known = [value for value in _reduced(values) if value is not None]
    if len(known) < 2:  # noqa: PLR2004 - a line has two ends
        return SafeString("")
    points = _points(known)
    return format_html(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}"'
        ' preserveAspectRatio="none"><polygon points="{}"/><polyline points="{}"/></svg>',
        label, WIDTH, HEIGHT, WIDTH, HEIGHT,
        f"{MARGIN},{HEIGHT} {points} {WIDTH - MARGIN},{HEIGHT}", points,
    )  # fmt: skip


def _points(values: Sequence[float]) -> str:
    # The axis starts at 0, so that small variations look small.
    top = max(*values, 1e-9)
    step = (WIDTH - 2 * MARGIN) / (len(values) - 1)
    drawn = HEIGHT - 2 * MARGIN
    return " ".join(
        f"{MARGIN + i * step:.1f},{HEIGHT - MARGIN - drawn * max(value, 0) / top:.1f}"
        for i, value in enumerate(values)
    )


def _reduced(values: Sequence[float | None]) -> Sequence[float | None]:
    return values[:: max(1, -(-len(values) // MAX_POINTS))]
