"""Error responses as problem details (RFC 9457, application/problem+json).

A body is {type, title, status, detail, instance, request, code, fields, rows, data}; what does not
apply is empty. code is a stable name of the error, type is the same as a URN. fields are
messages per field, rows are fields per row of a bulk request. Where a query's text is at fault,
data["places"] has the place by field: the line, marks below it, the character; data["row_places"]
has the same by row.
"""

import json
import logging
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.core.serializers.json import DjangoJSONEncoder
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import AuthenticationError, HttpError, ValidationError
from redis.exceptions import OutOfMemoryError, RedisError

from algorithms.strict_json import BadJson
from controlplane.access.request_ids import request_id
from controlplane.api.common.json_bodies import fault_of
from controlplane.api.common.schemas import PlaceOut, response_of
from controlplane.catalog.query_checks import places
from controlplane.errors import (
    DATABASE_AWAY_S,
    Away,
    BadBody,
    Busy,
    ConfirmationNeeded,
    Conflict,
    Fields,
    Forbidden,
    InProgress,
    Invalid,
    LoginNeeded,
    NotFound,
    TryLater,
)

logger = logging.getLogger(__name__)

CONTENT_TYPE: Final = "application/problem+json"
ROOT: Final = "/api/"
_AWAY: Final = "Not reachable"
# Housekeeping, or a person, has to make room in Redis.
REDIS_FULL_S: Final = 30
# The code of a status without a code of its own.
_CODES: Final = {
    400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found",
    405: "method_not_allowed", 413: "too_large", 415: "unsupported_media_type", 500: "broken",
}  # fmt: skip
_DETAILS: Final = {
    404: "There is nothing here",
    405: "The address does not accept this method: the header Allow lists the accepted ones",
    500: "Weir broke over this request; its log has the reason under the request's id",
}


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
    """Return the response of an error."""
    code = code or _CODES.get(status, "refused")
    body = {
        "type": f"urn:weir:problem:{code}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": request.path,
        "request": request_id(request),
        "code": code,
        "fields": dict(fields or {}),
        "rows": {str(row): messages for row, messages in (rows or {}).items()},
        "data": dict(data or {}),
    }
    text = json.dumps(body, cls=DjangoJSONEncoder)
    return HttpResponse(text, status=status, content_type=CONTENT_TYPE)


def api_problems(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that converts Django's error responses under /api/."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        refused = response.status_code >= HTTPStatus.BAD_REQUEST
        if not refused or not request.path.startswith(ROOT):
            return response
        if response.get("Content-Type", "").startswith(CONTENT_TYPE):
            return response
        status, title = response.status_code, response.reason_phrase
        body = problem(request, status, title, _DETAILS.get(status, f"{title}."))
        for name in filter(response.has_header, ("Allow", "Retry-After", "WWW-Authenticate")):
            body[name] = response[name]
        return body

    return respond


def translate_errors(api: NinjaAPI) -> None:
    """Register the error handlers of an API."""
    handlers: dict[type[Exception], Callable[..., HttpResponse]] = {
        Invalid: _invalid,
        ValidationError: _malformed,
        Forbidden: _forbidden,
        # 401 as in RFC 9470: the session is valid, but does not suffice.
        ConfirmationNeeded: lambda request, needed: problem(
            request, 401, "Confirmation needed", str(needed), code="confirmation_needed"
        ),
        NotFound: _not_found,
        Http404: lambda request, _: problem(request, 404, "Not found", _DETAILS[404]),
        Conflict: lambda request, refused: problem(
            request, 409, "Not now", str(refused), code=refused.code, data=refused.data
        ),
        Busy: partial(_later, 429, "Too much at once"),
        InProgress: partial(_later, 409, "Not now"),
        TryLater: partial(_later, 503, _AWAY),
        BadBody: _bad_body,
        OutOfMemoryError: _redis_full,
        RedisError: _redis_away,
        AuthenticationError: lambda request, _: anonymous(request),
        # Errors of Ninja itself, such as a missing CSRF token or a body that is not JSON.
        HttpError: _refused,
        BadJson: _refused,
        RequestDataTooBig: lambda request, _: problem(
            request, 413, "Too large", "The body is too large: send less at once"
        ),
        OperationalError: _database_away,
    }
    for kind, handler in handlers.items():
        api.add_exception_handler(kind, handler)


def _refused(request: HttpRequest, refused: HttpError | BadJson) -> HttpResponse:
    if fault := fault_of(refused):
        data = {"fault": fault.code, "line": fault.line, "column": fault.column}
        title, text = "The request is malformed", f"The body {fault}"
        fields = {fault.place: [str(fault)]} if fault.place else {}
        return problem(request, 400, title, text, code="bad_json", fields=fields, data=data)
    status = getattr(refused, "status_code", 400)
    code = _CODES[status] if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE else "refused"
    return problem(request, status, "Refused", str(refused), code=code)


def _not_found(request: HttpRequest, refused: NotFound) -> HttpResponse:
    data = {"kind": refused.kind, "name": str(refused.name)}
    return problem(request, 404, "Not found", str(refused), data=data)


def _bad_body(request: HttpRequest, bad: BadBody) -> HttpResponse:
    title = "The request is malformed"
    return problem(request, 400, title, str(bad), code=bad.code, data=bad.data)


def _later(status: int, title: str, request: HttpRequest, refused: TryLater) -> HttpResponse:
    response = problem(request, status, title, str(refused), code=refused.code, data=refused.data)
    response["Retry-After"] = str(refused.after_s)
    return response


def _invalid(request: HttpRequest, refused: Invalid) -> HttpResponse:
    """422: some values are not valid."""
    whys = [messages for faults in refused.fields.values() for messages in faults]
    if not whys and refused.rows:
        whys = [f"{len(refused.rows)} rows are at fault: nothing was done"]
    data: dict[str, Any] = dict(refused.data)
    if places := _places(refused.fields):
        data["places"] = places
    if rows := {row: places for row, fields in refused.rows.items() if (places := _places(fields))}:
        data["row_places"] = rows
    return problem(
        request,
        422,
        str(refused),
        "; ".join(whys),
        code=refused.code,
        fields=refused.fields,
        rows=refused.rows,
        data=data,
    )


def _places(fields: Fields) -> dict[str, Any]:
    return {
        name: response_of(PlaceOut, place).model_dump() for name, place in places(fields).items()
    }


def _malformed(request: HttpRequest, refused: ValidationError) -> HttpResponse:
    """422: the body is not of the documented shape."""
    fields: Fields = {}
    rows: dict[int, Fields] = {}
    for error in refused.errors:
        # ("body", "spec", "window_s") names the field window_s of the argument spec.
        within = error["loc"][2:]
        place = ".".join(str(part) for part in within) or str(error["loc"][-1])
        fields.setdefault(place, []).append(error["msg"])
        if len(within) > 1 and isinstance(within[1], int):
            field = ".".join(str(part) for part in within[2:]) or str(within[0])
            rows.setdefault(within[1], {}).setdefault(field, []).append(error["msg"])
    detail = "; ".join(f"{name}: {' '.join(messages)}" for name, messages in fields.items())
    title = "The request is malformed"
    return problem(request, 422, title, detail, code="malformed", fields=fields, rows=rows)


def _forbidden(request: HttpRequest, refused: Forbidden) -> HttpResponse:
    """403: the role is missing; the audit log has the message."""
    request.refusal = str(refused)  # type: ignore[attr-defined]
    code = "login_needed" if isinstance(refused, LoginNeeded) else "forbidden"
    data = {"role": refused.role}
    return problem(request, 403, "Not allowed", str(refused), code=code, data=data)


def _redis_away(request: HttpRequest, error: RedisError) -> HttpResponse:
    """503: Redis does not respond."""
    logger.warning("Redis does not answer: %s", error)
    away = Away("redis_away", "Redis does not answer", DATABASE_AWAY_S)
    return _later(503, _AWAY, request, away)


def _redis_full(request: HttpRequest, error: OutOfMemoryError) -> HttpResponse:
    """503: Redis has reached its limit of memory and refuses to store more."""
    logger.error("Redis is full: %s", error)
    text = "Redis has reached its memory limit (the page System shows what it holds)"
    return _later(503, _AWAY, request, Away("redis_full", text, REDIS_FULL_S))


def anonymous(request: HttpRequest) -> HttpResponse:
    """Return the response to a request with neither session nor token: 401."""
    response = problem(request, 401, "Who are you?", "Log in, or send a bearer token")
    response["WWW-Authenticate"] = "Bearer"
    return response


def _database_away(request: HttpRequest, refused: OperationalError) -> HttpResponse:
    """503: the database is locked or unavailable."""
    logger.error("The database does not answer", exc_info=refused)
    error = TryLater("database_away", "The database does not answer now", DATABASE_AWAY_S)
    return _later(503, _AWAY, request, error)
