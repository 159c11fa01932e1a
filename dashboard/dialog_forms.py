"""Forms in dialogs, which show errors at their fields."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from controlplane.access.roles import require_operator
from controlplane.errors import Conflict, Fields, Invalid
from controlplane.models import Cluster
from dashboard.guards import PageRequest, cluster_action
from dashboard.responses import notify, notify_refusal, render_page


def cluster_dialog(
    page: str,
    *keys: str,
    form: str,
    field: str,
    context: Callable[..., Mapping[str, Any]] = lambda *_, **__: {},
    refused: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda _: {},
) -> Callable[[Callable[..., str]], Callable[..., HttpResponseBase]]:
    """Return a decorator of changes of a cluster by operators, as `responses.cluster_change`.

    If the change is refused, the view returns the form with the submitted values, the errors by
    field and the context; the error of a conflict belongs to `field`. `refused`: returns what the
    form needs besides, for the context with `values` and `errors`. Without htmx, the page shows the
    error.
    """

    def decorate(change: Callable[..., str]) -> Callable[..., HttpResponseBase]:
        @cluster_action
        @wraps(change)
        def view(request: PageRequest, cluster: Cluster, **parts: Any) -> HttpResponse:
            require_operator(request.actor, cluster)
            url = reverse(page, args=[cluster.slug, *(parts[key] for key in keys)])
            try:
                notify(request, change(request, cluster, **parts))
            except (Invalid, Conflict) as refusal:
                if not request.htmx:
                    notify_refusal(request, refusal)
                    return redirect(url)
                values, errors = request.POST.dict(), faults_by_field(refusal, field)
                shown = {**context(cluster, **parts), "values": values, "errors": errors}
                return render_page(request, form, {**shown, **refused(shown)}, status=422)
            return HttpResponseClientRedirect(url) if request.htmx else redirect(url)

        return view

    return decorate


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
