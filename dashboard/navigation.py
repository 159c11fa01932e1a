"""The navigation of all pages: clusters with their grade, pages of the open cluster with counts."""

from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet
from django.urls import reverse

from controlplane.models import Cluster, Node, Proposal, Query, Stream
from dashboard import thresholds
from dashboard.guards import PageRequest


@dataclass(frozen=True)
class NavigationPage:
    """A page of the navigation; `details` are the URL names of the pages below it."""

    name: str
    label: str
    details: tuple[str, ...] = ()
    fragment: str = ""


@dataclass(frozen=True)
class NavigationLink:
    """A link of the navigation; `count` is None for pages without one."""

    url: str
    label: str
    is_current: bool = False
    count: int | None = None


@dataclass(frozen=True)
class ClusterLink:
    """A cluster in the navigation with its worst grade, and the pages of the open one."""

    slug: str
    name: str
    grade: str
    pages: tuple[NavigationLink, ...] = ()

    @property
    def status(self) -> str:
        """Return the grade in words, for readers who do not see the dot."""
        return _STATUS.get(self.grade, "no data")


@dataclass(frozen=True)
class Navigation:
    """The links of a page; `section` is the page of the navigation that it belongs to."""

    clusters: tuple[ClusterLink, ...]
    site: tuple[NavigationLink, ...]
    section: NavigationLink | None
    needing: int
    firing: int


CLUSTER_PAGES: Final = (
    NavigationPage("cluster", "Overview", ("explain",)),
    NavigationPage("cluster", "Nodes", ("node",), fragment="nodes"),
    NavigationPage("streams", "Streams", ("stream", "stream-new", "stream-schema", "dead-letters")),
    NavigationPage("queries", "Queries", ("query", "query-keys", "query-new")),
    NavigationPage("proposals", "Proposals", ("proposal", "proposal-ask", "proposal-form")),
    NavigationPage("comparisons", "Compare", ("comparison", "comparison-ask")),
    NavigationPage("shedding", "Shedding"),
    NavigationPage("ledger", "Ledger"),
    NavigationPage("decisions", "Decisions"),
    NavigationPage("policy", "Policy", ("policy-change",)),
)
SITE_PAGES: Final = (
    NavigationPage("lab", "Lab", ("lab-experiment", "lab-run")),
    NavigationPage("attached", "Attached jobs", ("attached-query",)),
    NavigationPage("audit", "Audit log"),
    NavigationPage("grants", "Grants", ("grant-set",)),
    NavigationPage("tokens", "Tokens", ("token-make",)),
    NavigationPage(
        "webhooks", "Webhooks", ("webhook", "webhook-add", "webhook-change", "webhook-secret")
    ),
    NavigationPage("system", "System"),
    NavigationPage("api:openapi-view", "API"),
    NavigationPage("help", "Help"),
)
_STATUS: Final = {
    thresholds.GOOD: "all limits kept",
    thresholds.WARN: "needs attention",
    thresholds.BAD: "limit exceeded",
}


def navigation(request: PageRequest) -> Navigation:
    """Return the navigation of a page."""
    match = request.resolver_match
    current = match.url_name or "" if match else ""
    site = tuple(
        _link(page, current)
        for page in SITE_PAGES
        if page.name != "grants" or request.actor.is_any_admin
    )
    clusters = tuple(_cluster_link(row, request, current) for row in _clusters(request))
    pages = [page for cluster in clusters for page in cluster.pages]
    return Navigation(
        clusters=clusters,
        site=site,
        section=next((link for link in (*pages, *site) if link.is_current), None),
        needing=sum(cluster.grade == thresholds.BAD for cluster in clusters),
        firing=0,
    )


def _clusters(request: PageRequest) -> QuerySet[Cluster]:
    """Return the visible clusters by name."""
    rows, seen = Cluster.objects.order_by("name", "slug"), request.actor.clusters
    visible = rows if seen is None else rows.filter(pk__in=seen)
    return visible.only("slug", "name", "state")


def _cluster_link(row: Cluster, request: PageRequest, current: str) -> ClusterLink:
    pages: tuple[NavigationLink, ...] = ()
    if request.cluster is not None and request.cluster.pk == row.pk:
        counts = _counts(row)
        pages = tuple(
            _link(page, current, row.slug, counts.get(page.label)) for page in CLUSTER_PAGES
        )
    grade = thresholds.STATES.get(row.state, thresholds.UNKNOWN)
    return ClusterLink(row.slug, row.name, grade, pages)


def _link(
    page: NavigationPage, current: str, slug: str = "", count: int | None = None
) -> NavigationLink:
    url = reverse(page.name, args=[slug] if slug else [])
    if page.fragment:
        is_current = current in page.details
        return NavigationLink(f"{url}#{page.fragment}", page.label, is_current, count)
    return NavigationLink(url, page.label, current in (page.name, *page.details), count)


def _counts(cluster: Cluster) -> dict[str, int]:
    """Return the counts of the open cluster by the label of their page."""
    return {
        "Nodes": Node.objects.filter(cluster=cluster, active=True).count(),
        "Streams": Stream.objects.filter(cluster=cluster).count(),
        "Queries": Query.objects.filter(cluster=cluster, state=Query.State.RUNNING).count(),
        "Proposals": Proposal.objects.filter(cluster=cluster, state=Proposal.State.READY).count(),
    }
