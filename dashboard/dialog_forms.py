"""Forms in dialogs, which show errors at their fields."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from controlplane.access.roles import Actor, require_operator
from controlplane.clusters.listing import visible_cluster
from controlplane.errors import Conflict, Fields, Invalid, NotFound
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


def chosen_cluster(actor: Actor, values: Mapping[str, str], field: str) -> Cluster | None:
    """Return the cluster whose slug a field has, None for an empty field.

    Raises `Invalid` if the actor does not see such a cluster.
    """
    slug = values.get(field, "")
    try:
        return visible_cluster(actor, slug) if slug else None
    except NotFound as missing:
        raise Invalid({field: [str(missing)]}) from None
