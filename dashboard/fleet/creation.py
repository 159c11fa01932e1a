"""Creation of clusters from the page of the fleet: with equal nodes, or the cluster of a demo."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import slugify
from django_htmx.http import HttpResponseClientRedirect

from controlplane.access.roles import ADMIN, require
from controlplane.cluster_spec.creation import NewCluster, create_configured_cluster
from controlplane.clusters import demo
from controlplane.errors import Invalid
from controlplane.models import Cluster
from dashboard.dialog_forms import chosen_cluster, faults_by_field
from dashboard.forms import number, whole_number
from dashboard.guards import PageRequest, anyone_action
from dashboard.responses import notify, render_page

_LONGEST_SLUG = 40
# The titles of the sources of records; the value is a field of the form.
_OTHER_LOG = "url"


@anyone_action
def post_demo(request: PageRequest, name: str) -> HttpResponse:
    """Create the cluster of a demo and redirect to its page."""
    cluster = demo.add(request.actor, name)
    notify(request, f"{cluster.name} is added and starts.")
    return redirect("cluster", cluster.slug)


@anyone_action
def create(request: PageRequest) -> HttpResponse:
    """Create the cluster of the form and redirect to its page, or return the form with errors."""
    require(request.actor, ADMIN)
    try:
        cluster = create_configured_cluster(request.actor, _new_cluster(request))
    except Invalid as refusal:
        context: dict[str, Any] = {"values": request.POST.dict(), "errors": _errors(refusal)}
        context["clusters"] = Cluster.objects.order_by("name")
        template = "_cluster_create_form.html" if request.htmx else "cluster_create.html"
        return render_page(request, template, context, 422)
    started = " It starts; its first figures appear with its first records."
    notify(request, f"{cluster.name} is created.{started if request.POST.get('starts') else ''}")
    url = reverse("cluster", args=[cluster.slug])
    return HttpResponseClientRedirect(url) if request.htmx else redirect(url)


def _errors(refusal: Invalid) -> Mapping[str, Any]:
    """Return the errors by field of the form; those of other fields belong to the name."""
    fields = ("name", "slug", "log_url", "slots", "node_capacity", "policy_of")
    return {
        name if name in fields else "name": texts
        for name, texts in faults_by_field(refusal, "name").items()
    }


def _new_cluster(request: PageRequest) -> NewCluster:
    values = request.POST
    name = values.get("name", "").strip()
    slots = whole_number(values.get("slots", ""))
    return NewCluster(
        values={
            "name": name,
            "slug": values.get("slug", "").strip() or slugify(name)[:_LONGEST_SLUG].strip("-"),
            "log_url": values.get("log_url", "").strip() if _has_log(values) else "",
            # The service rejects 0 and nan.
            "slots": slots if slots is not None else 0,
        },
        node_capacity=number(values.get("node_capacity", "").replace(",", "")),
        policy_of=chosen_cluster(request.actor, values, "policy_of"),
        starts=bool(values.get("starts")),
    )


def _has_log(values: Mapping[str, str]) -> bool:
    return values.get("source") == _OTHER_LOG
