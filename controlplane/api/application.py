"""The Ninja application: routers, and one translation of every refusal into a 4xx body.

Every error body is {"title", "detail", "fields", "code", "data", "rows"}, what does not apply is
empty: fields are messages per field, rows are fields per row of a bulk request. Where a query's
text is at fault, data["places"] says where by field: the line, marks below it, the character.
"""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError

from controlplane.api import arcs, attached, clusters, lab, proposals, queries, records, streams
from controlplane.api.schemas import PlaceOut
from controlplane.api.security import AUTHENTICATION
from controlplane.errors import Away, Busy, Conflict, Fields, Forbidden, Invalid, NotFound, TryLater
from controlplane.services.texts import places

api = NinjaAPI(
    title="Weir",
    version="1",
    description="Clusters, streams, queries, proposals and the Lab. Times are UTC, ISO 8601.",
    auth=AUTHENTICATION,
    urls_namespace="api",
    docs_decorator=login_required,
)
api.add_router("/clusters", clusters.router)
api.add_router("/clusters", streams.router)
api.add_router("/clusters", records.router)
api.add_router("/clusters", queries.router)
api.add_router("/clusters", arcs.router)
api.add_router("/clusters", proposals.router)
api.add_router("/lab", lab.router)
api.add_router("/attached", attached.router)


def problem(
    request: HttpRequest,
    status: int,
    title: str,
    detail: str,
    *,
    code: str = "",
    fields: Fields | None = None,
    rows: Mapping[int, Fields] | None = None,
    data: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Return the one shape that every refusal has."""
    body = {
        "title": title,
        "detail": detail,
        "code": code,
        "fields": dict(fields or {}),
        "rows": {str(row): told for row, told in (rows or {}).items()},
        "data": dict(data or {}),
    }
    return api.create_response(request, body, status=status)


@api.exception_handler(Invalid)
def invalid(request: HttpRequest, refused: Invalid) -> HttpResponse:
    """422: some values are not valid."""
    # A fault in a text goes on with the line that it points at.
    whys = [told.partition("\n")[0] for faults in refused.fields.values() for told in faults]
    found = {name: PlaceOut.of(one).dict() for name, one in places(refused.fields).items()}
    return problem(
        request,
        422,
        str(refused),
        "; ".join(whys),
        code="invalid",
        fields=refused.fields,
        rows=refused.rows,
        data={"places": found} if found else None,
    )


@api.exception_handler(ValidationError)
def malformed(request: HttpRequest, refused: ValidationError) -> HttpResponse:
    """422: the body is not of the documented shape."""
    fields: Fields = {}
    for error in refused.errors:
        # ("body", "spec", "window_s") names the field window_s of the argument spec.
        place = ".".join(str(part) for part in error["loc"][2:]) or str(error["loc"][-1])
        fields.setdefault(place, []).append(error["msg"])
    detail = "; ".join(f"{name}: {' '.join(told)}" for name, told in fields.items())
    return problem(
        request, 422, "The request is malformed", detail, code="malformed", fields=fields
    )


@api.exception_handler(Forbidden)
def forbidden(request: HttpRequest, refused: Forbidden) -> HttpResponse:
    """403: the role is missing."""
    return problem(request, 403, "Not allowed", str(refused), code="forbidden")


@api.exception_handler(NotFound)
def not_found(request: HttpRequest, refused: NotFound) -> HttpResponse:
    """404: no such row."""
    return problem(request, 404, "Not found", str(refused), code="not_found")


@api.exception_handler(Http404)
def no_page(request: HttpRequest, refused: Http404) -> HttpResponse:
    """404: no such address."""
    return problem(request, 404, "Not found", "There is nothing here", code="not_found")


@api.exception_handler(Conflict)
def conflict(request: HttpRequest, refused: Conflict) -> HttpResponse:
    """409: the state does not allow it now."""
    return problem(request, 409, "Not now", str(refused), code=refused.code, data=refused.data)


@api.exception_handler(Busy)
def busy(request: HttpRequest, refused: Busy) -> HttpResponse:
    """429: slow down."""
    return _later(request, 429, "Too much at once", refused)


@api.exception_handler(Away)
def away(request: HttpRequest, refused: Away) -> HttpResponse:
    """503: something that this needs does not answer."""
    return _later(request, 503, "Not reachable", refused)


def _later(request: HttpRequest, status: int, title: str, refused: TryLater) -> HttpResponse:
    response = problem(request, status, title, str(refused), code=refused.code, data=refused.data)
    response["Retry-After"] = str(refused.after_s)
    return response


@api.exception_handler(AuthenticationError)
def anonymous(request: HttpRequest, refused: AuthenticationError) -> HttpResponse:
    """401: neither session nor token."""
    response = problem(
        request, 401, "Who are you?", "Log in, or send a bearer token", code="unauthorized"
    )
    response["WWW-Authenticate"] = "Bearer"
    return response


@api.exception_handler(HttpError)
def refused_by_framework(request: HttpRequest, refused: HttpError) -> HttpResponse:
    """Anything Ninja refuses itself, such as a missing CSRF token or a body that is no JSON."""
    return problem(request, refused.status_code, "Refused", str(refused), code="refused")
