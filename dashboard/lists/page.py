"""A list page: its rows by the filter text, order and page number of the address.

The filter bar has the text, the place of a fault, help and completion from the fields.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.http import HttpResponse

from controlplane.errors import Invalid
from controlplane.lists.kinds import CommonFilter, ListKind, ListScope
from controlplane.lists.saved_views import default_view, saved_views
from controlplane.models import SavedView
from controlplane.pagination.columns import FieldKind, ListColumn
from controlplane.pagination.filter_text import BadFilter
from controlplane.pagination.listing import Filters, Listing
from controlplane.pagination.pages import Page, whole
from dashboard.guards import PageRequest
from dashboard.responses import render_page
from dashboard.time_range import TimeRange

# What an operator means for the values of a kind, for people.
_MEANINGS: Final[Mapping[FieldKind, str]] = {
    FieldKind.TEXT: ": contains, = is exactly",
    FieldKind.CHOICE: ": is",
    FieldKind.NUMBER: "> >= < <= compare, : is",
    FieldKind.TIME: "> >= < <= compare",
}
_VALUES: Final[Mapping[FieldKind, str]] = {
    FieldKind.TEXT: "text, in quotes with blanks",
    FieldKind.NUMBER: "number",
    FieldKind.TIME: "2026-11-24, 2026-11-24T10:30 (UTC), or an age: 30m, 2h, 7d",
}


@dataclass(frozen=True)
class FilterHelp:
    """A field of the filter text in the help."""

    name: str
    title: str
    operators: str
    values: str


@dataclass(frozen=True)
class TextFault:
    """A fault of a filter text: its message, and the text before, at and after its place."""

    message: str
    before: str
    place: str
    after: str


@dataclass(frozen=True)
class FilterBar:
    """The filter bar of a list page; `chosen`: its text with single blanks."""

    text: str
    chosen: str
    example: str
    fields: Sequence[FilterHelp]
    quick: Sequence[CommonFilter]
    completion: str
    fault: TextFault | None = None


def filter_bar(kind: ListKind, text: str, fault: BadFilter | None = None) -> FilterBar:
    """Return the filter bar of a list with a text."""
    return FilterBar(
        text=text,
        chosen=" ".join(text.split()),
        example=kind.example,
        fields=[_help(field) for field in kind.fields],
        quick=kind.common,
        completion=json.dumps([_completion(field) for field in kind.fields]),
        fault=None if fault is None else text_fault(text, fault),
    )


def text_fault(text: str, fault: BadFilter) -> TextFault:
    """Return a fault with the parts of the text around its place."""
    start, stop = int(fault.data["start"]), int(fault.data["end"])
    message = "; ".join(fault.fields["filter"])
    return TextFault(message, text[:start], text[start:stop], text[stop:])


def _help(field: ListColumn) -> FilterHelp:
    values = ", ".join(field.choices()) or _VALUES.get(field.kind, "")
    unit = f" ({field.unit})" if field.unit else ""
    return FilterHelp(field.term, field.about, _MEANINGS[field.kind], f"{values}{unit}")


def _completion(field: ListColumn) -> Mapping[str, Any]:
    return {
        "name": field.term,
        "title": field.about,
        "operators": list(field.operators),
        "values": list(field.choices()),
        "unit": field.unit,
        "is_time": field.kind is FieldKind.TIME,
    }


PER_PAGE: Final = 50
RANGE_NAMES: Final = ("range", "from", "to")
# Parameters of the address that are terms of the filter text, too.
_TERMS: Final[Mapping[str, str]] = {
    "state": "state:{}", "node": "node:{}", "stream": 'stream="{}"', "split": "split:{}",
    "planner": "planner:{}", "loop": "loop:{}", "code": "reason:{}", "q": '"{}"',
    "cluster": "cluster={}", "action": 'action="{}"', "request": "request={}",
}  # fmt: skip


@dataclass(frozen=True)
class ListPage:
    """A list of a page: its rows; none, with the fault in the bar, if the filter has one."""

    kind: ListKind
    bar: FilterBar
    order: str
    listing: Listing[Any, Any] | None
    page: Page[Any]
    views: Sequence[SavedView] = ()

    @property
    def status(self) -> int:
        """Return the HTTP status of the response."""
        return 200 if self.listing is not None else 422

    @property
    def is_filtered(self) -> bool:
        """Return True if the filter text is not that of an address without one."""
        return self.bar.text != self.kind.default


def list_page(
    request: PageRequest,
    kind: ListKind,
    *,
    time_range: TimeRange | None = None,
    others: Collection[str] = (),
    change: Callable[[Listing[Any, Any]], Listing[Any, Any]] | None = None,
) -> ListPage:
    """Return the page of a list that the address names.

    `others`: the page's parameters that are not filters; `change`: of the rows, before a page of
    them is read. Raises `Invalid` for other faults than those of the filter text.
    """
    values = list_values(request, kind, others)
    scope = ListScope(request.actor, request.cluster)
    listing: Listing[Any, Any] | None = None
    fault: BadFilter | None = None
    page: Page[Any] = Page([], 0, 1, PER_PAGE)
    try:
        listing = kind.rows(scope, values)
        if time_range is not None:
            listing = kind.within(listing, time_range.start, time_range.end)
        if change is not None:
            listing = change(listing)
        page = listing.page
    except BadFilter as bad:
        listing, fault = None, bad
    bar = filter_bar(kind, str(values.get("filter", "")), fault)
    views = saved_views(request.actor, kind.name)
    return ListPage(kind, bar, str(values.get("order", "")), listing, page, views)


def list_values(
    request: PageRequest, kind: ListKind, others: Collection[str] = ()
) -> dict[str, Any]:
    """Return the values of the filters in an address, as one filter text.

    An address without parameters has those of the user's default view, one without a filter the
    default filter of the list. Raises `Invalid` for unknown parameters.
    """
    names = {item.name for name, item in kind.filters.parameters().items()}
    require_known(request, {*names, *others})
    given = {
        name: value
        for name, value in request.GET.dict().items()
        if name in names and name != EXPLAIN
    }
    terms = [
        pattern.format(str(given.pop(name)).replace('"', ""))
        for name, pattern in _TERMS.items()
        if name in given and _is_term(given, name)
    ]
    for name in _TERMS:
        given.pop(name, None)
    view = None if request.GET else default_view(request.actor, kind.name)
    if view is not None:
        order = {"order": view.order} if view.order else {}
        return {"per_page": PER_PAGE, **order, "filter": view.filter}
    has_filter = any(name in request.GET for name in ("filter", *_TERMS))
    text = str(given.pop("filter", "")) if has_filter else kind.default
    order = {"order": kind.order} if kind.order else {}
    return {"per_page": PER_PAGE, **order, **given, "filter": " ".join([*terms, text]).strip()}


def _is_term(given: Mapping[str, Any], name: str) -> bool:
    """Return whether a parameter has a value; an empty one selects all rows."""
    return bool(str(given[name]).strip())


def render_list_page(
    request: PageRequest, template: str, fragment: str, shown: ListPage, context: dict[str, Any]
) -> HttpResponse:
    """Render the fragment of a list for a live update, the whole page otherwise."""
    is_fragment = request.htmx and not request.htmx.boosted
    values = {"list": shown, "page": shown.page, "bar": shown.bar} | context
    return render_page(request, fragment if is_fragment else template, values, shown.status)


def require_readable(listing: ListPage) -> Listing[Any, Any]:
    """Return the listing of a page. Raises `Invalid` if its filter has a fault."""
    if listing.listing is None:
        fault = listing.bar.fault
        raise Invalid({"filter": [fault.message if fault is not None else "Cannot be read"]})
    return listing.listing


# The subject of the panel that explains it, beside any page of a cluster.
EXPLAIN: Final = "explain"
Kind = TypeVar("Kind", bound=Filters)


def list_filters(
    request: PageRequest,
    kind: type[Kind],
    defaults: Mapping[str, Any] | None = None,
    *,
    others: Collection[str] = (),
    **given: Any,
) -> Kind:
    """Return the filters in the address of a page.

    `defaults`: values by parameter; `others`: the page's parameters that are not filters; `given`:
    fields that are not read from the address. Raises `Invalid` for invalid values and, as the API
    does, for unknown parameters.
    """
    names = (item.name for field, item in kind.parameters().items() if field not in given)
    require_known(request, {*names, *others})
    values = {name: value for name, value in request.GET.dict().items() if name != EXPLAIN}
    return kind.of({**(defaults or {}), **values}, **given)


def page_number(request: PageRequest, name: str = "page") -> int:
    """Return the number in the address of a page with no other parameter. Raises `Invalid`."""
    require_known(request, {name})
    return whole(request.GET, name, 1)


def require_known(request: PageRequest, known: Collection[str]) -> None:
    """Raise `Invalid` if the address of a page has a parameter with another name.

    Pages of a cluster have the subject of an explanation, too.
    """
    panel = {EXPLAIN} if getattr(request, "cluster", None) is not None else set()
    if unknown := sorted(request.GET.keys() - set(known) - panel):
        text = f"Is not a parameter of this page, which has: {', '.join(sorted(known))}"
        raise Invalid({name[:100]: [text] for name in unknown[:20]})
