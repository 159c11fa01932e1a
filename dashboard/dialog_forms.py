"""Forms in dialogs, which show errors at their fields."""

from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django_htmx.http import HttpResponseClientRedirect

from controlplane.errors import Conflict, Fields, Invalid
from dashboard.guards import PageRequest
from dashboard.responses import notify, notify_refusal, render_page


def answer(
    request: PageRequest,
    change: Callable[[], str],
    *,
    page: str,
    form: str,
    field: str,
    context: Mapping[str, Any] | None = None,
) -> HttpResponse:
    """Apply a change and redirect to a page with the message that `change` returns.

    If the change is refused, return the form with the submitted values and the errors by field;
    the error of a conflict belongs to `field`. Without htmx, the page shows the error.
    """
    try:
        notify(request, change())
    except (Invalid, Conflict) as refusal:
        if not request.htmx:
            notify_refusal(request, refusal)
            return redirect(page)
        errors = {"values": request.POST.dict(), "errors": faults_by_field(refusal, field)}
        return render_page(request, form, {**(context or {}), **errors}, status=422)
    return HttpResponseClientRedirect(page) if request.htmx else redirect(page)


def faults_by_field(refusal: Invalid | Conflict, field: str) -> Fields:
    """Return the messages of an error by field, without full stops."""
    faults = refusal.fields if isinstance(refusal, Invalid) else {field: [str(refusal)]}
    return {name: [text.rstrip(".") for text in texts] for name, texts in faults.items()}


def whole_numbers(values: Mapping[str, str], *names: str) -> dict[str, int]:
    """Return the whole numbers of these fields. Raises `Invalid` per field."""
    whole_numbers: dict[str, int] = {}
    faults: Fields = {}
    for name in names:
        number = whole_number(values.get(name, ""))
        if number is None:
            faults[name] = ["Enter a whole number"]
        else:
            whole_numbers[name] = number
    if faults:
        raise Invalid(faults)
    return whole_numbers


def whole_number(text: str) -> int | None:
    """Return a whole number of at most nine digits; commas and blanks may group them."""
    digits = "".join(text.replace(",", "").split())
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 9 else None  # noqa: PLR2004
