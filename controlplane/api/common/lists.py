"""Pagination of the API's lists: by cursor, or by page number (deprecated)."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from controlplane.pagination.cursors import Slice
from controlplane.pagination.pages import Page


def by_number(request: HttpRequest) -> bool:
    """Return True if a request names a page number."""
    return "page" in request.GET


def listed(
    request: HttpRequest,
    response: HttpResponse,
    page: Slice[Any] | Page[Any],
) -> dict[str, Any]:
    """Return the common fields of a list's body, and set the header Link to the next page."""
    if isinstance(page, Page):
        return {"total": page.total, "page": page.number, "pages": page.pages, "next": None}
    if page.next:
        link_next(request, response, page.next)
    return {"total": page.total, "page": None, "pages": None, "next": page.next or None}


def link_next(request: HttpRequest, response: HttpResponse, cursor: str) -> None:
    """Set the header Link to the page at a cursor."""
    response["Link"] = f'<{_next(request, cursor)}>; rel="next"'


def _next(request: HttpRequest, cursor: str) -> str:
    kept: Mapping[str, Sequence[Any]] = dict(request.GET.lists()) | {"cursor": [cursor]}
    return request.build_absolute_uri(f"{request.path}?{urlencode(kept, doseq=True)}")
