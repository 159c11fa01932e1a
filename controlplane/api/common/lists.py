"""What the lists of the API share: a page at a cursor, or by number as it used to be."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from controlplane.pagination.cursors import Slice
from controlplane.pagination.pages import Page


def by_number(request: HttpRequest) -> bool:
    """Tell whether a caller asks for a page by its number."""
    return "page" in request.GET


def listed(
    request: HttpRequest,
    response: HttpResponse,
    page: Slice[Any] | Page[Any],
) -> dict[str, Any]:
    """Return what every list's body says beside its rows, and name the next page in Link."""
    if isinstance(page, Page):
        return {"total": page.total, "page": page.number, "pages": page.pages, "next": None}
    if page.next:
        link_next(request, response, page.next)
    return {"total": page.total, "page": None, "pages": None, "next": page.next or None}


def link_next(request: HttpRequest, response: HttpResponse, cursor: str) -> None:
    """Name the page at a cursor in the header Link."""
    response["Link"] = f'<{_next(request, cursor)}>; rel="next"'


def _next(request: HttpRequest, cursor: str) -> str:
    kept: Mapping[str, Sequence[Any]] = dict(request.GET.lists()) | {"cursor": [cursor]}
    return request.build_absolute_uri(f"{request.path}?{urlencode(kept, doseq=True)}")
