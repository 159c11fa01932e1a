"""Detection of values that databases cannot store: invalid characters, infinite numbers.

PostgreSQL stores neither NUL nor half of a surrogate pair as text, and neither of them nor NaN as
JSON; SQLite takes some of it. Refused at the door, both behave the same. Readers of JSON refuse it
themselves (`algorithms.strict_json`).
"""

from collections.abc import Callable
from typing import Final

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest

from algorithms.strict_json import unstorable

__all__ = ["refuse_unstorable", "unstorable"]

_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")


def refuse_unstorable(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Return the middleware that refuses addresses and forms with NUL (400)."""

    def respond(request: HttpRequest) -> HttpResponse:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
            return _refusal("the address (%00)")
        return get_response(request)

    # Forms are read once it is known that their sender may send them.
    respond.process_view = _refused_form  # type: ignore[attr-defined]
    return respond


def _refusal(place: str) -> HttpResponse:
    text = f"NUL is not a character: {place} has one"
    return HttpResponseBadRequest(text, reason=text)


def _refused_form(
    request: HttpRequest, view: Callable[..., object], *_: object
) -> HttpResponse | None:
    # Operations of the API and metrics read no forms, so they need no CSRF token.
    if request.content_type not in _FORMS or getattr(view, "csrf_exempt", False):
        return None
    try:
        sent = request.POST.lists()
    except (RequestDataTooBig, OSError):
        # The view meets the same, and has its own words for it.
        return None
    return next((_refusal(f"the field {name[:100]!r}") for name, values in sent
                 if any("\0" in text for text in (name, *values))), None)  # fmt: skip
