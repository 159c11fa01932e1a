"""Template tags of the design system: icons, chips, bars with limits, sparklines with limits.

Widths are attributes of SVG elements, because the Content Security Policy forbids style attributes.
"""

from collections.abc import Sequence
from functools import cache
from typing import Final

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from controlplane.installation.assets.typeface import typeface_files
from controlplane.svg import Scale, line, percent

register = template.Library()

# Drawings in a square of 16 by 16.
ICONS: Final = {
    "ok": '<circle cx="8" cy="8" r="6.2"/><path d="m5.3 8.2 1.9 1.9 3.6-3.9"/>',
    "warning": '<path d="M8 2.2 14.3 13H1.7z"/><path d="M8 6.4v3.2M8 11.4v.1"/>',
    "exceeded": '<path d="M5.4 1.8h5.2l3.6 3.6v5.2l-3.6 3.6H5.4l-3.6-3.6V5.4z"/>'
    '<path d="M8 4.8v3.8M8 11v.1"/>',
    "info": '<circle cx="8" cy="8" r="6.2"/><path d="M8 7.3v3.6M8 5.1v.1"/>',
    "search": '<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3 3"/>',
    "clock": '<circle cx="8" cy="8" r="6.2"/><path d="M8 4.6V8l2.3 1.5"/>',
    "lock": '<rect x="3.2" y="7" width="9.6" height="6.5" rx="1.2"/>'
    '<path d="M5.2 7V5a2.8 2.8 0 0 1 5.6 0v2"/>',
    "plan": '<path d="M8 1.8 9.5 6l4.2 1.5L9.5 9 8 13.2 6.5 9 2.3 7.5 6.5 6z"/>',
    "pause": '<path d="M5.5 3.5v9M10.5 3.5v9"/>',
    "play": '<path d="M5 3.2v9.6l7.5-4.8z"/>',
    "stop": '<rect x="3.8" y="3.8" width="8.4" height="8.4" rx="1"/>',
    "undo": '<path d="M5.5 3 2.8 5.7l2.7 2.7M3 5.7h6.2a3.6 3.6 0 0 1 0 7.2H6.5"/>',
    "bell": '<path d="M4 11V7a4 4 0 0 1 8 0v4l1 1.5H3zM6.7 14.2h2.6"/>',
    "arrow": '<path d="M3 8h9.5M8.8 4.2 12.6 8l-3.8 3.8"/>',
    "menu": '<path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h11"/>',
    "down": '<path d="m4.5 6.5 3.5 3.5 3.5-3.5"/>',
    "back": '<path d="M9.5 4.5 6 8l3.5 3.5"/>',
    "forward": '<path d="M6.5 4.5 10 8l-3.5 3.5"/>',
    "table": '<rect x="2.2" y="3" width="11.6" height="10" rx="1.2"/>'
    '<path d="M2.2 6.5h11.6M6.5 6.5V13"/>',
    "link": '<path d="M6.7 9.3a3 3 0 0 0 4.3 0l2-2a3 3 0 0 0-4.3-4.3l-1 1M9.3 6.7a3 3 0 0 0-4.3'
    ' 0l-2 2a3 3 0 0 0 4.3 4.3l1-1"/>',
    "more": '<path d="M3.5 8h.1M8 8h.1M12.4 8h.1" stroke-width="2.4"/>',
    "close": '<path d="m4 4 8 8M12 4l-8 8"/>',
    "add": '<path d="M8 3.2v9.6M3.2 8h9.6"/>',
    "download": '<path d="M8 2.5v8M4.7 7.4 8 10.6l3.3-3.2M3 13.5h10"/>',
    "policy": '<path d="M8 1.8 13.2 4v4c0 3-2.2 5.2-5.2 6.2C5 13.2 2.8 11 2.8 8V4z"/>',
}
# A state is never colour alone: each level has a shape, and the chip a word.
GRADE_ICONS: Final = {"good": "ok", "warn": "warning", "bad": "exceeded", "info": "info"}
SPARK_WIDTH: Final = 120
SPARK_HEIGHT: Final = 22
# More points than half the pixels are indistinguishable.
_MAX_POINTS: Final = 60
# The highest value of an axis, in limits.
_FAR: Final = 2.5


@register.simple_tag
def preload_typeface() -> str:
    """Return the link by which the browser loads the typeface before it reads the style sheet."""
    name = "inter-latin.woff2"
    link = '<link rel="preload" href="{}" as="font" type="font/woff2" crossorigin>'
    return format_html(link, static(f"vendor/{name}")) if name in typeface_files() else ""


@register.simple_tag
def icon(name: str, grade: str = "") -> SafeString:
    """Return the SVG of an icon, hidden from screen readers: words stand beside it."""
    return format_html(
        '<svg class="i {}" viewBox="0 0 16 16" aria-hidden="true">{}</svg>',
        grade, mark_safe(ICONS[name]),  # noqa: S308 - a drawing of this module
    )  # fmt: skip


@register.simple_tag
def grade_icon(grade: str, other: str = "") -> SafeString:
    """Return the icon of a level: good, warn, bad or info; `other` for others, "" for none."""
    if grade in GRADE_ICONS:
        return icon(GRADE_ICONS[grade], grade)
    return icon(other) if other else SafeString("")


@register.simple_tag
def chip(text: str, grade: str = "", icon_name: str = "") -> SafeString:
    """Return a state in a word, with the colour and the icon of its level."""
    drawn = icon(icon_name or GRADE_ICONS[grade]) if icon_name or grade in GRADE_ICONS else ""
    return format_html('<span class="chip {}">{}{}</span>', grade, drawn, text)


@register.simple_tag
def bullet(
    value: float | None,
    limit: float | None = None,
    grade: str = "",
    bound: float | None = None,
    top: float | None = None,
) -> SafeString:
    """Return a bar with a tick at its limit and dots at its bound; text beside it has the numbers.

    `top`: the value of the whole width, by default 1.2 times the largest of the others.
    """
    whole = top or 1.2 * max(value or 0.0, limit or 0.0, bound or 0.0)
    if not whole:
        return SafeString("")
    return format_html(
        '<svg class="bullet" data-grade="{}" aria-hidden="true"><rect class="track" y="3"'
        ' width="100%" height="6"/><rect class="fill" y="3" width="{}" height="6"/>{}{}</svg>',
        grade, percent(value or 0.0, whole), tick("at-limit", limit, whole),
        tick("at-bound", bound, whole),
    )  # fmt: skip


@register.simple_tag
def share(part: float | None, grade: str = "") -> SafeString:
    """Return a small bar of a part of 1; text beside it has the number."""
    return format_html(
        '<svg class="share" data-grade="{}" aria-hidden="true"><rect class="track" width="100%"'
        ' height="100%"/><rect class="fill" width="{}" height="100%"/></svg>',
        grade, percent(part or 0.0),
    )  # fmt: skip


@register.simple_tag
def spark(
    values: Sequence[float | None], label: str, limit: float | None = None, grade: str = ""
) -> SafeString:
    """Return a line of the values from left to right, with a gap at None, and a dashed limit.

    The axis starts at 0 and includes the limit; values far above the limit, as after
    a start, are drawn at the top. Returns "" for fewer than two values.
    """
    drawn = values[:: max(1, -(-len(values) // _MAX_POINTS))]
    known = [value for value in drawn if value is not None]
    if len(known) < 2:  # noqa: PLR2004 - a line has two ends
        return SafeString("")
    top = 1.1 * max(min(max(known), _FAR * limit if limit else max(known)), limit or 0.0, 1e-9)
    scale, rule = Scale(0.0, top, SPARK_HEIGHT - 1, 1.0), ""
    places = [None if value is None else scale(min(value, top)) for value in drawn]
    if limit is not None:
        y = f"{scale(limit):.1f}"
        rule = format_html(
            '<line class="limit" x1="0" x2="{}" y1="{}" y2="{}"/>', SPARK_WIDTH, y, y
        )
    return format_html(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 {} {}"'
        ' preserveAspectRatio="none">{}<path class="l {}" d="{}"/></svg>',
        label, SPARK_WIDTH, SPARK_HEIGHT, rule, "sb" if grade == "bad" else "s1",
        line(zip(_places(len(drawn)), places, strict=True)),
    )  # fmt: skip


@cache
def _places(count: int) -> tuple[float, ...]:
    """Return the horizontal places of so many values; lines have few different lengths."""
    step = SPARK_WIDTH / max(1, count - 1)
    return tuple(i * step for i in range(count))


def tick(css_class: str, value: float | None, whole: float, height: int = 12) -> SafeString:
    """Return a line across a bar at a value, "" for none."""
    if value is None:
        return SafeString("")
    x = percent(value, whole)
    return format_html('<line class="{}" x1="{}" x2="{}" y2="{}"/>', css_class, x, x, height)
