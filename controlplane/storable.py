"""Detection of values that databases cannot store: invalid characters, infinite numbers.

PostgreSQL stores neither NUL nor half of a surrogate pair as text, and neither of them nor NaN as
JSON; SQLite takes some of it. Refused at the door, both behave the same.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, RawPostDataException

from algorithms.strict_json import check_bounds

Path = tuple[int | str, ...]
MESSAGE: Final = "The request holds a character that is none (NUL, or half of one), or no number"
_RECORDS: Final = re.compile(r"^/api/.*/streams/(infer|[^/]+/records)$")
# Where JSON may write such a thing; only then is it worth reading twice.
_SIGNS: Final = (b"\\u0000", b"\\ud", b"\\uD", b"NaN", b"Infinity")


def unstorable(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield the places in a JSON value of what cannot be stored, and what is wrong there."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from unstorable(name, (*path, name))
            yield from unstorable(item, (*path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from unstorable(item, (*path, index))
    elif isinstance(value, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
        yield path, "Has a character that is none (NUL, or half of one)"
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, "Must be a finite number"


def refuse_unstorable(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that refuses requests with anything that cannot be stored (400)."""

    def respond(request: HttpRequest) -> HttpResponse:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return HttpResponseBadRequest(MESSAGE)
        if request.method not in ("GET", "HEAD", "OPTIONS") and _body_is_unstorable(request):
            return HttpResponseBadRequest(MESSAGE)
        return get_response(request)

    return respond


def _body_is_unstorable(request: HttpRequest) -> bool:
    kind = request.content_type or ""
    form = kind == "application/x-www-form-urlencoded"
    # Records are decoded in a confined child, which refuses the same.
    if _RECORDS.search(request.path) or not (form or kind.endswith("json")):
        return False
    try:
        body = request.body
    except (RawPostDataException, RequestDataTooBig, OSError):
        # The view meets the same, and has its own words for it.
        return False
    if form:
        return b"%00" in body or b"\0" in body
    return any(sign in body for sign in _SIGNS) and _json_is_unstorable(body)


def _json_is_unstorable(body: bytes) -> bool:
    try:
        check_bounds(body)
        return next(unstorable(json.loads(body)), None) is not None
    except (ValueError, RecursionError):
        # Its reader reports the error.
        return False
