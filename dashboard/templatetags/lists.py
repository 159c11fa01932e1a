"""Template tags of the tables of lists: headers and cells of their declared columns."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from django import template
from django.template import RequestContext
from django.template.defaultfilters import floatformat
from django.utils.html import conditional_escape, format_html
from django.utils.safestring import SafeString

from controlplane import numbers
from controlplane.pagination.columns import Columns, ListColumn
from dashboard.templatetags.terms import term
from dashboard.templatetags.weir import order_link, order_of

register = template.Library()
_NONE: Final = SafeString('<span class="muted">none</span>')
# How a value is written, by its unit.
_WRITTEN: Final[Mapping[str, Callable[[Any], str]]] = {
    "records": numbers.compact,
    "records/s": numbers.compact,
    "evaluations/s": numbers.compact,
    "ms": numbers.milliseconds,
    "bytes": numbers.size,
    "bytes/s": numbers.size,
    "s": lambda value: f"{floatformat(value, -3)} s",
    "% of one processor": lambda value: numbers.percent(value / 100),
    "queries": lambda value: numbers.counted(value, "queries") if value else _NONE,
}


@register.simple_tag(takes_context=True)
def head(context: RequestContext, column: ListColumn) -> SafeString:
    """Return the header of a column, which sorts the list by it."""
    figure = SafeString(' class="num"') if column.is_figure else ""
    # Only figures are explained: other labels are words with several meanings, such as state.
    label: str = column.title
    if column.is_figure:
        label = term(column.title, in_link=column.is_ordered, of=column.explained_by)
    if column.note:
        label = format_html('{}<span class="sub">{}</span>', label, column.note)
    if not column.is_ordered:
        return format_html('<th scope="col"{}>{}</th>', figure, label)
    return format_html(
        '<th scope="col"{} aria-sort="{}"><a href="{}">{}</a></th>',
        figure, order_of(context, column.term), order_link(context, column.term, column.first),
        label,
    )  # fmt: skip


@register.simple_tag
def cell(column: ListColumn, row: Any) -> SafeString:
    """Return the cell of a column in a row, a dash for a value that is not known."""
    value = column.value(row) if column.value is not None and column.is_known(row) else None
    classes = ("num " if column.is_figure else "") + ("muted" if value is None else "")
    text = numbers.MISSING if value is None else _WRITTEN.get(column.unit, str)(value)
    text = conditional_escape(text)
    if column.is_main and value is not None:
        text = f'<span class="value-of">{text}</span>'
    return SafeString(f'<td class="{classes}" data-label="{column.label}">{text}</td>')


@register.simple_tag
def figures(columns: Columns, row: Any) -> SafeString:
    """Return the cells of the figures of a row, in one call: a page has a thousand of them."""
    return SafeString("".join(cell(column, row) for column in columns if column.is_figure))
