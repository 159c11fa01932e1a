"""Template filters and tags: numbers with units, ages, levels, links."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django import template
from django.http import QueryDict
from django.template import RequestContext
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from controlplane import numbers
from controlplane.access.audit_folding import FoldedActions
from dashboard import thresholds
from dashboard.browser_names import browser_name
from dashboard.templatetags.design import chip

register = template.Library()


def _filter(write: Callable[[float | None], str]) -> None:
    """Register a formatter of numbers as a filter, which accepts "" for missing values."""

    def shown(value: object) -> str:
        return write(value if isinstance(value, int | float) else None)

    register.filter(write.__name__, shown)


for formatter in (
    numbers.compact, numbers.ratio, numbers.percent, numbers.milliseconds, numbers.size,
    numbers.seconds, numbers.signed, numbers.points, numbers.change_in_points,
):  # fmt: skip
    _filter(formatter)


@register.filter
def in_unit(value: object, unit: str) -> str:
    """Return a number with its unit, as `numbers.value_text`."""
    return numbers.value_text(value if isinstance(value, int | float) else None, unit)


@register.filter
def pairs(mapping: object) -> list[tuple[Any, Any]]:
    """Return the names and values of a mapping, none of anything else.

    In a template `mapping.items` is the value of a name `items`, if there is one.
    """
    return list(mapping.items()) if isinstance(mapping, Mapping) else []


@register.filter
def age(moment: datetime | None) -> SafeString | str:
    """Return the age of a moment, which the script of the page updates."""
    if moment is None:
        return numbers.MISSING
    text = numbers.age(moment, timezone.now())
    return format_html(
        '<time datetime="{}" title="{} UTC" data-age>{}</time>',
        moment.isoformat(), f"{moment:%Y-%m-%d %H:%M:%S}", text,
    )  # fmt: skip


@register.filter
def utc(moment: datetime | None) -> SafeString | str:
    """Return a moment in UTC, with seconds."""
    if moment is None:
        return numbers.MISSING
    return format_html(
        '<time datetime="{}">{}</time>', moment.isoformat(), f"{moment:%Y-%m-%d %H:%M:%S}"
    )


register.filter("browser_name", browser_name)


@register.filter
def json_text(value: object) -> str:
    """Return a stored value as JSON."""
    return json.dumps(value, ensure_ascii=False, default=str)


@register.filter
def state(word: str) -> SafeString:
    """Return a state as a chip with the colour and the shape of its level."""
    if word in thresholds.STATE_CHIPS:
        return chip(word, *thresholds.STATE_CHIPS[word])
    return chip(word, thresholds.STATES.get(word, ""))


@register.filter
def action_words(code: str) -> str:
    """Return the code of an audited action in words: query.task_count, Query: task count."""
    return numbers.raised(code.replace(".", ": ").replace("_", " ").replace("-", " "))


@register.filter
def counted(number: int, things: str) -> str:
    """Return a number with its noun, given in the plural: 1 query, 2,000 queries."""
    return numbers.counted(number, things)


@register.filter
def lowered(text: str) -> str:
    """Return a title as a clause: with a small first letter."""
    return numbers.lowered(text)


@register.filter
def short(seal: str) -> str:
    """Return the start of a seal."""
    return seal[:12]


@register.simple_tag(takes_context=True)
def with_query(context: RequestContext, **changes: Any) -> str:
    """Return the query string of the page with changed values; None removes a value."""
    values = context["request"].GET.copy()
    for name, value in changes.items():
        values.pop(name, None)
        if value not in (None, ""):
            values[name] = str(value)
    return f"?{values.urlencode()}"


@register.simple_tag(takes_context=True)
def list_link(context: RequestContext, text: str, order: str = "", **changes: Any) -> str:
    """Return the query string of a list with a filter text, in the time range of the page.

    An empty text is kept, as it selects all rows.
    """
    given = context["request"].GET
    kept = {name: given[name] for name in ("range", "from", "to") if name in given}
    values = QueryDict(mutable=True)
    values.update({"filter": text} | ({"order": order} if order else {}) | kept | changes)
    return f"?{values.urlencode()}"


@register.simple_tag(takes_context=True)
def unfold_link(context: RequestContext, actions: FoldedActions) -> str:
    """Return the query string of the page with the entries of folded actions one by one."""
    terms = [context["bar"].text, f'who="{actions.actor}"', f'action="{actions.action}"']
    if actions.cluster is not None:
        terms.append(f"cluster={actions.cluster.slug}")
    start, stop = (round(moment.timestamp() * 1000) for moment in (actions.start, actions.stop))
    replaced = dict.fromkeys(("q", "cluster", "action", "request", "cursor", "page", "range"))
    changes = {"filter": " ".join(filter(None, terms)), "fold": "no", "from": start, "to": stop}
    return with_query(context, **replaced, **changes)


@register.simple_tag(takes_context=True)
def order_link(context: RequestContext, column: str, first: str = "") -> str:
    """Return the query string that sorts by a column, or reverses the order.

    `first`: "-" if the first click sorts the largest value first.
    """
    current = _order(context)
    chosen, other = (f"{sign}{column}" for sign in (first, "" if first else "-"))
    return with_query(context, order=other if current == chosen else chosen, page=None)


def _order(context: RequestContext) -> str:
    shown = context.get("list")
    return str(shown.order if shown is not None else context["request"].GET.get("order", ""))


@register.simple_tag(takes_context=True)
def order_of(context: RequestContext, column: str) -> str:
    """Return the aria-sort value of a column."""
    current = _order(context)
    return {column: "ascending", f"-{column}": "descending"}.get(current, "none")
