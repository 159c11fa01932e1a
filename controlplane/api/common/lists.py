"""Pagination of the API's lists: by cursor, or by page number."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from controlplane.pagination.cursors import MAX_CURSOR, Place, Slice
from controlplane.pagination.listing import Filters, Listing
from controlplane.pagination.pages import MAX_PER_PAGE, PER_PAGE, Page, whole

T = TypeVar("T")


def with_parameters(schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the `openapi_extra` of an operation with query parameters that its code reads."""
    return {
        "parameters": [
            {"in": "query", "name": name, "required": False, "schema": dict(schema)}
            for name, schema in schemas.items()
        ]
    }


def list_parameters(kind: type[Filters], *, by_number: bool = True) -> dict[str, Any]:
    """Return the `openapi_extra` of a list: its filters, cursor and limit.

    `by_number`: the list can also be requested by page number.
    """
    declared = {item.name: item.schema() for item in kind.parameters().values()}
    if not by_number:
        declared = {name: schema for name, schema in declared.items() if name not in _NUMBERED}
    return with_parameters(declared | {"cursor": CURSOR, "limit": LIMIT})


def _numbered() -> dict[str, Mapping[str, Any]]:
    own = {item.name: item.schema() for item in Filters.parameters().values()}
    return {"page": own["page"], "per_page": own["per_page"]}


CURSOR: Final = {"type": "string", "maxLength": MAX_CURSOR}
LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": MAX_PER_PAGE}
_NUMBERED: Final = _numbered()
# The `openapi_extra` of a list by page number.
BY_NUMBER: Final = with_parameters(_NUMBERED)


def requested_page(request: HttpRequest, listing: Listing[Any, T]) -> Page[T] | Slice[T]:
    """Return the page that a request names by number, else the rows at its cursor.

    Raises `Invalid`, also for a wrong limit beside the number of a page, which it does not use.
    """
    place = Place.of(request.GET)
    return listing.page if "page" in request.GET else listing.after(place)


def numbers_of(request: HttpRequest) -> tuple[int, int]:
    """Return the number of the requested page, and its number of rows."""
    values = request.GET
    return whole(values, "page", 1), whole(values, "per_page", PER_PAGE, MAX_PER_PAGE)


def about(page: Page[Any]) -> dict[str, int]:
    """Return the common fields of lists by page number."""
    return {"total": page.total, "page": page.number, "pages": page.pages}


def listed(
    request: HttpRequest,
    response: HttpResponse,
    page: Slice[Any] | Page[Any],
) -> dict[str, Any]:
    """Return the common fields of a list's body, and set the header Link to the next page."""
    if isinstance(page, Page):
        return about(page) | {"next": None}
    if page.next:
        link_next(request, response, page.next)
    return {"total": page.total, "page": None, "pages": None, "next": page.next or None}


def link_next(request: HttpRequest, response: HttpResponse, cursor: str) -> None:
    """Set the header Link to the page at a cursor."""
    response["Link"] = f'<{_next(request, cursor)}>; rel="next"'


def _next(request: HttpRequest, cursor: str) -> str:
    kept: Mapping[str, Sequence[Any]] = dict(request.GET.lists()) | {"cursor": [cursor]}
    return request.build_absolute_uri(f"{request.path}?{urlencode(kept, doseq=True)}")
