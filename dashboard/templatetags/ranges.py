"""Template tags of time ranges: links that keep the other parameters of the page."""

from django import template
from django.http import QueryDict
from django.template import RequestContext

from dashboard.time_range import RANGES, TimeRange, length_text

register = template.Library()
# Parameters of a time range, and those of what was opened or listed in the former one.
_REPLACED = ("range", "from", "to", "page", "after")


@register.simple_tag
def range_choices() -> list[tuple[str, str]]:
    """Return the ranges of the picker: name, and length in words."""
    return [(name, f"Last {length_text(name)}") for name in RANGES]


@register.simple_tag(takes_context=True)
def range_link(context: RequestContext, chosen: TimeRange | str) -> str:
    """Return the query string of the page with another time range, or with ?range=<name>."""
    values = other_parameters(context["request"].GET)
    query = f"range={chosen}" if isinstance(chosen, str) else chosen.query
    for part in query.split("&"):
        name, _, value = part.partition("=")
        values[name] = value
    return f"?{values.urlencode()}"


@register.simple_tag(takes_context=True)
def range_fields(context: RequestContext) -> list[tuple[str, str]]:
    """Return name and value of the page's other parameters, for hidden fields of a form."""
    values = other_parameters(context["request"].GET)
    return [(name, value) for name, listed in values.lists() for value in listed]


def other_parameters(query: QueryDict) -> QueryDict:
    """Return a copy of the parameters without those of the time range."""
    values = query.copy()
    for name in _REPLACED:
        values.pop(name, None)
    return values
