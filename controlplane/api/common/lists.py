"""Lists of the API: all answer their rows with `next`, the cursor of the following rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse

from controlplane.pagination.cursors import MAX_CURSOR, PageRange, Slice
from controlplane.pagination.listing import Filters
from controlplane.pagination.pages import MAX_PER_PAGE, PER_PAGE


class Listed(Protocol):
    """Rows that are read after a cursor."""

    def after(self, place: PageRange) -> Slice[Any]:
        """Return the rows after a cursor. Raises `Invalid` for an invalid cursor."""


def with_parameters(schemas: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the `openapi_extra` of an operation with query parameters that its code reads."""
    return {
        "parameters": [
            {"in": "query", "name": name, "required": False, "schema": dict(schema)}
            for name, schema in schemas.items()
        ]
    }


CURSOR: Final = {"type": "string", "maxLength": MAX_CURSOR}
LIMIT: Final = {"type": "integer", "minimum": 1, "maximum": MAX_PER_PAGE}
BY_CURSOR: Final[dict[str, Mapping[str, Any]]] = {"cursor": CURSOR, "limit": LIMIT}
# The pages for people have numbers.
_NUMBERED: Final = frozenset(Filters.parameters())


def list_parameters(kind: type[Filters] = Filters) -> dict[str, Any]:
    """Return the `openapi_extra` of a list: its filters, cursor and limit."""
    own = {item.name: item.schema() for item in kind.parameters().values()}
    filters = {name: schema for name, schema in own.items() if name not in _NUMBERED}
    return with_parameters(filters | BY_CURSOR)


def listed(
    request: HttpRequest,
    response: HttpResponse,
    listing: Listed,
    name: str,
    row: Callable[[Any], Any] | None = None,
    *,
    limit: int = PER_PAGE,
) -> dict[str, Any]:
    """Return the body of a list at the requested cursor, and set the header Link to the next rows.

    `name`: of the rows in the body; `row`: returns the body of a row; `limit`: the default number
    of rows. Raises `Invalid`.
    """
    part = listing.after(PageRange.of(request.GET, limit))
    if part.next:
        link_next(request, response, part.next)
    rows: Sequence[Any] = part.rows if row is None else list(map(row, part.rows))
    return {"total": part.total, "next": part.next or None, name: rows}


def link_next(request: HttpRequest, response: HttpResponse, cursor: str) -> None:
    """Set the header Link to the page at a cursor."""
    response["Link"] = f'<{_next(request, cursor)}>; rel="next"'


def _next(request: HttpRequest, cursor: str) -> str:
    kept: Mapping[str, Sequence[Any]] = dict(request.GET.lists()) | {"cursor": [cursor]}
    return request.build_absolute_uri(f"{request.path}?{urlencode(kept, doseq=True)}")
