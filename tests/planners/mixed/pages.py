"""A page of the planner: the ages of the queries of a cluster."""

from django.http import HttpResponse
from django.urls import path
from django.utils.html import format_html_join

from controlplane.models import Cluster
from dashboard.guards import PageRequest, cluster_page
from dashboard.navigation import NavigationPage
from tests.planners.mixed.observation import read_input


@cluster_page
def index(_: PageRequest, cluster: Cluster) -> HttpResponse:
    """List the ages of the queries of a cluster."""
    rows = read_input(cluster).ages.items()
    return HttpResponse(format_html_join("\n", "<p>{}: {} s</p>", rows))


PAGES = (NavigationPage("mixed", "Mixed"),)
URLS = [path("mixed/", index, name="mixed")]
