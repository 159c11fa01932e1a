"""The navigation of all pages: clusters with their status, pages of the open one with counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.urls import reverse
from django.utils import timezone

from controlplane.alerts.statuses import ClusterStatus, cluster_statuses
from controlplane.installation.extras import lab_values
from controlplane.models import Cluster, Node, Proposal, Query, Stream
from controlplane.planning.adapters import planner_modules
from dashboard.guards import PageRequest


@dataclass(frozen=True)
class NavigationPage:
    """A page of the navigation; `details` are the URL names of the pages below it.

    `is_rare`: below "More", as operators seldom need it.
    """

    name: str
    label: str
    details: tuple[str, ...] = ()
    fragment: str = ""
    is_rare: bool = False


@dataclass(frozen=True)
class NavigationLink:
    """A link of the navigation; `count` is None for pages without one."""

    url: str
    label: str
    is_current: bool = False
    count: int | None = None
    is_rare: bool = False


@dataclass(frozen=True)
class ClusterLink:
    """A cluster in the navigation with its level in words, and the pages of the open one."""

    slug: str
    name: str
    url: str
    grade: str
    status: str
    pages: tuple[NavigationLink, ...] = ()


@dataclass(frozen=True)
class Navigation:
    """The links of a page; `section` is the page of the navigation that it belongs to.

    `needing`: clusters that need a person; `firing`: what they need one for: the limits
    whose alerts are neither acknowledged nor silenced.
    """

    clusters: tuple[ClusterLink, ...]
    site: tuple[NavigationLink, ...]
    section: NavigationLink | None
    needing: int
    firing: int


_CLUSTER_PAGES: Final = (
    NavigationPage("cluster", "Overview", ("explain",)),
    NavigationPage("cluster", "Nodes", ("node",), fragment="nodes"),
    NavigationPage(
        "streams",
        "Streams",
        (
            "stream",
            "stream-new",
            "stream-schema",
            "stream-schema-preview",
            "stream-messages",
            "dead-letters",
        ),
    ),
    NavigationPage("queries", "Queries", ("query", "query-keys", "query-sinks", "query-new")),
    NavigationPage("sql", "Results", ("sql-login",)),
    NavigationPage("proposals", "Proposals", ("proposal", "proposal-ask", "proposal-form")),
    NavigationPage("comparisons", "Compare", ("comparison", "comparison-ask")),
    NavigationPage("ledger", "Ledger"),
    NavigationPage("decisions", "Decisions"),
    NavigationPage("policy", "Policy", ("policy-change",)),
)
SITE_PAGES: Final = (
    NavigationPage("alerts", "Alerts", ("alert",)),
    *(
        NavigationPage(name, label, details, is_rare=True)
        for name, label, details in lab_values("dashboard.lab.frame:SITE_PAGES")
    ),
    NavigationPage("attached", "Attached jobs", ("attached-query",), is_rare=True),
    NavigationPage("audit", "Audit log"),
    NavigationPage("grants", "Grants", ("grant-set",)),
    NavigationPage("tokens", "Tokens", ("token-make",)),
    NavigationPage(
        "webhooks", "Webhooks", ("webhook", "webhook-add", "webhook-change", "webhook-secret")
    ),
    NavigationPage("system", "System"),
    NavigationPage("api:openapi-view", "API", is_rare=True),
    NavigationPage("help", "Help"),
)


@cache
def cluster_pages() -> tuple[NavigationPage, ...]:
    """Return the pages of a cluster, those of planners before the ledger."""
    planners = (page for module in planner_modules("pages", "dashboard.planners")
                for page in module.PAGES)  # fmt: skip
    first = [page.name for page in _CLUSTER_PAGES].index("ledger")
    return (*_CLUSTER_PAGES[:first], *planners, *_CLUSTER_PAGES[first:])


def navigation(request: PageRequest) -> Navigation:
    """Return the navigation of a page."""
    match = request.resolver_match
    current = match.url_name or "" if match else ""
    every = tuple(_link(page, current) for page in SITE_PAGES)
    # The page of webhooks names its admins to others: while it is open, the menu has it.
    site = tuple(
        link for page, link in zip(SITE_PAGES, every, strict=True)
        if page.name not in ("grants", "webhooks") or request.actor.is_any_admin or link.is_current
    )  # fmt: skip
    statuses = statuses_of(request)
    clusters = tuple(_cluster_link(row, request, current) for row in statuses)
    pages = [page for cluster in clusters for page in cluster.pages]
    return Navigation(
        clusters=clusters,
        site=site,
        section=next((link for link in (*pages, *every) if link.is_current), None),
        needing=sum(row.needs_person for row in statuses),
        firing=sum(len(row.limits) for row in statuses),
    )


def statuses_of(request: PageRequest) -> Sequence[ClusterStatus]:
    """Return the statuses of the visible clusters, read once for all parts of a page."""
    if request.statuses is None:
        request.statuses = cluster_statuses(request.actor.clusters, timezone.now())
    return request.statuses


def _cluster_link(row: ClusterStatus, request: PageRequest, current: str) -> ClusterLink:
    pages: tuple[NavigationLink, ...] = ()
    cluster = row.cluster
    if request.cluster is not None and request.cluster.pk == cluster.pk:
        counts = _counts(cluster)
        pages = tuple(
            _link(page, current, cluster.slug, counts.get(page.label)) for page in cluster_pages()
        )
    url = reverse("cluster", args=[cluster.slug])
    return ClusterLink(cluster.slug, cluster.name, url, row.level, row.words, pages)


def _link(
    page: NavigationPage, current: str, slug: str = "", count: int | None = None
) -> NavigationLink:
    url = reverse(page.name, args=[slug] if slug else [])
    if page.fragment:
        is_current = current in page.details
        return NavigationLink(f"{url}#{page.fragment}", page.label, is_current, count)
    is_current = current in (page.name, *page.details)
    return NavigationLink(url, page.label, is_current, count, page.is_rare)


def _counts(cluster: Cluster) -> dict[str, int]:
    """Return the counts of the open cluster by the label of their page."""
    return {
        "Nodes": Node.objects.filter(cluster=cluster, active=True).count(),
        "Streams": Stream.objects.filter(cluster=cluster).count(),
        "Queries": Query.objects.filter(cluster=cluster, state=Query.State.RUNNING).count(),
        "Proposals": Proposal.awaiting_approval().filter(cluster=cluster).count(),
    }
