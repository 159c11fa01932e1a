"""Filters of lists from the address of a page, which has no other parameters."""

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeVar

from controlplane.errors import Invalid
from controlplane.pagination.listing import Filters
from controlplane.pagination.pages import whole
from dashboard.guards import PageRequest

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
