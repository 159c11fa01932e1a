"""The tour on the pages of a demo cluster: its present step, its start and its end."""

from urllib.parse import urlsplit

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from controlplane.alerts.listing import open_alerts
from controlplane.alerts.measures import AlertMeasure
from controlplane.clusters import tour
from controlplane.clusters.tour import Tour
from controlplane.explain import subject_of_measure
from controlplane.models import Cluster
from dashboard.guards import PageRequest, cluster_page
from dashboard.responses import cluster_change, render_page


@cluster_page
def show(request: PageRequest, cluster: Cluster) -> HttpResponse:
    """Render the present step of the user's tour, or the offer to start it."""
    if not request.actor.is_operator:
        return HttpResponse()
    running = tour.tour_of(request.actor, cluster)
    if not request.htmx:
        return redirect("cluster", cluster.slug)
    is_overview = _is_overview(request, cluster)
    context = {
        "tour": running,
        "tour_url": "" if running is None else _url_of(cluster, running),
        "is_overview": is_overview,
        "is_offered": running is None and is_overview and tour.is_offered(request.actor, cluster),
    }
    return render_page(request, "_tour.html", context)


def _is_overview(request: PageRequest, cluster: Cluster) -> bool:
    """Return True for the overview of the cluster: other pages show a tour that has started."""
    page = urlsplit(request.htmx.current_url or "").path
    return page == reverse("cluster", args=[cluster.slug])


def _url_of(cluster: Cluster, running: Tour) -> str:
    """Return the address of the page on which the present step is done."""
    step = running.current
    page = reverse("cluster", args=[cluster.slug])
    if step is None:
        return page
    if step.proposal is not None:
        return reverse("proposal", args=[cluster.slug, step.proposal])
    if step.code in ("read", "approve"):
        return f"{reverse('proposals', args=[cluster.slug])}#request"
    if step.code == "explain":
        return f"{page}?{urlencode({'explain': _alerted(cluster)})}"
    return page


def _alerted(cluster: Cluster) -> str:
    """Return what Explain opens: the measure of the newest alert that is open."""
    rows = [alert for alert in open_alerts([cluster.pk]) if alert.subject in set(AlertMeasure)]
    if not rows:
        return str(subject_of_measure(AlertMeasure.IMBALANCE))
    return str(subject_of_measure(rows[-1].subject, rows[-1].node))


@cluster_change("cluster")
def start(request: PageRequest, cluster: Cluster) -> str:
    """Start the user's tour."""
    tour.start_tour(request.actor, cluster)
    return "The tour has started: its steps are at the top of the pages of this cluster."


@cluster_change("cluster")
def dismiss(request: PageRequest, cluster: Cluster) -> str:
    """End the user's tour."""
    tour.dismiss_tour(request.actor, cluster)
    return "The tour is dismissed. More actions, Start tour starts it again."
