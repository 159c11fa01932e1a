"""Entries of the palette: pages, commands, and what belongs to an object."""

from dataclasses import dataclass
from typing import Final

from django.urls import reverse

from controlplane.access.roles import OPERATOR, VIEWER, Actor
from controlplane.lists.search import Hit, HitKind
from controlplane.models import Cluster
from dashboard.navigation import SITE_PAGES, cluster_pages


@dataclass(frozen=True)
class PaletteEntry:
    """A line of the palette.

    `url`: what it opens, "" for a command that `run` names (static/js/palette.js). `detail`: the
    words at its end. `cluster`: the name of the cluster that it belongs to, "" for none. `also`:
    other words that find it.
    """

    text: str
    icon: str
    url: str = ""
    run: str = ""
    detail: str = ""
    cluster: str = ""
    also: str = ""

    @property
    def named(self) -> str:
        """Return the words that a search looks at."""
        return f"{self.text} {self.also}".strip()


@dataclass(frozen=True)
class Command:
    """A command: opens a form of a page, or runs in the browser; `role`: who may use the form.

    `also`: other words that find it.
    """

    text: str
    icon: str
    page: str = ""
    fragment: str = ""
    run: str = ""
    role: str = VIEWER
    also: str = ""


# Of the open cluster.
_CLUSTER_COMMANDS: Final = (
    Command("Explain the latency", "plan", "cluster", "?explain=measure:latency_p95",
            also="slow lag delay why cause"),
    Command("Explain the load", "plan", "cluster", "?explain=measure:node_load",
            also="hot busy overload overloaded fullest node why cause"),
    Command("Create query", "add", "query-new", role=OPERATOR, also="new add submit job sql"),
    Command("Declare stream", "add", "stream-new", role=OPERATOR, also="new add create topic"),
    Command("Request plan", "plan", "proposals", "#request", role=OPERATOR,
            also="rebalance move repair fix"),
    Command("Compare planners", "plan", "comparisons", role=OPERATOR),
    Command("Change limits", "policy", "policy", "#section-watch",
            also="settings configuration thresholds alert"),
    Command("Change automatic approval", "policy", "policy", "#section-approval",
            also="settings configuration approve"),
    Command("Drop records in an overload", "policy", "shedding",
            also="load shedding"),
    Command("Start a scenario", "play", "cluster", "#scenario-list", role=OPERATOR,
            also="demo disturb test chaos"),
    Command("Exclude from plans", "lock", "policy", "#exclusions", role=OPERATOR,
            also="pin freeze lock"),
    Command("Add blackout", "clock", "policy", "#blackouts", also="maintenance window"),
    Command("Show all proposals that wait", "table", "proposals", also="approve approval review"),
)  # fmt: skip
_COMMANDS: Final = (
    Command("Create token", "lock", "tokens", also="api key producer script"),
    Command("Show account and sessions", "info", "account", also="password settings log out"),
    Command("Show keys", "table", run="keys", also="shortcuts keyboard help"),
    Command("Use light theme", "arrow", run="theme-light"),
    Command("Use dark theme", "arrow", run="theme-dark"),
    Command("Use theme of the system", "arrow", run="theme-system"),
)
# Other words that people type for pages, by the name of the page.
_ALSO: Final = {
    "alerts": "firing incidents notifications",
    "audit": "history who changed log",
    "cluster": "dashboard charts slow",
    "decisions": "why nothing happens monitors",
    "grants": "users roles permissions settings",
    "help": "documentation manual glossary how",
    "ledger": "predicted measured accuracy record",
    "policy": "settings limits configuration thresholds",
    "queries": "jobs sql",
    "streams": "topics sources split lag",
    "system": "health status processes storage slow settings",
    "webhooks": "slack notifications settings",
}
_ICONS: Final = {
    HitKind.CLUSTER: "policy", HitKind.NODE: "info", HitKind.STREAM: "arrow",
    HitKind.QUERY: "search", HitKind.PROPOSAL: "plan", HitKind.EXPERIMENT: "table",
}  # fmt: skip
_PAGE_OF: Final = {
    HitKind.NODE: "node", HitKind.STREAM: "stream", HitKind.QUERY: "query",
    HitKind.PROPOSAL: "proposal",
}  # fmt: skip


def entries_of(hit: Hit) -> list[PaletteEntry]:
    """Return the entry of an object, and for a node what can be opened about it."""
    entry = PaletteEntry(hit.name, _ICONS[hit.kind], url_of(hit), "", hit.detail, hit.cluster_name)
    if hit.kind != HitKind.NODE:
        return [entry]
    explain = f"{reverse('explain', args=[hit.cluster])}?subject=node:{hit.key}"
    queries = f"{reverse('queries', args=[hit.cluster])}?node={hit.key}"
    return [
        entry,
        PaletteEntry(
            f"Explain {hit.name}, now", "plan", explain, "", "load, latency, backlog", entry.cluster
        ),
        PaletteEntry(f"Queries on {hit.name}", "table", queries, "", "", entry.cluster),
    ]


def url_of(hit: Hit) -> str:
    """Return the address of an object's page."""
    if hit.kind == HitKind.CLUSTER:
        return reverse("cluster", args=[hit.key])
    if hit.kind == HitKind.EXPERIMENT:
        return reverse("lab-experiment", args=hit.key.split("/"))
    return reverse(_PAGE_OF[hit.kind], args=[hit.cluster, hit.key])


def pages(actor: Actor, cluster: Cluster | None) -> list[PaletteEntry]:
    """Return the pages of the open cluster and of Weir that the actor may open."""
    own = [] if cluster is None else [
        PaletteEntry(page.label, "arrow", _url(page.name, page.fragment, cluster), "", cluster.name,
                     also=_ALSO.get(page.name, ""))
        for page in cluster_pages()
    ]  # fmt: skip
    site = [
        PaletteEntry(page.label, "arrow", reverse(page.name), "", "Weir",
                     also=_ALSO.get(page.name, ""))
        for page in SITE_PAGES
        if page.name != "grants" or actor.is_any_admin
    ]  # fmt: skip
    return [*own, PaletteEntry("Fleet", "arrow", reverse("fleet"), "", "all clusters"), *site]


def commands(actor: Actor, cluster: Cluster | None) -> list[PaletteEntry]:
    """Return the commands of the open cluster that the actor may use, and those of Weir."""
    own = [] if cluster is None else [
        PaletteEntry(command.text, command.icon, _url(command.page, command.fragment, cluster), "",
              cluster.name, also=command.also)
        for command in _CLUSTER_COMMANDS
        if actor.on(cluster).may(command.role)
    ]  # fmt: skip
    site = [
        PaletteEntry(command.text, command.icon, reverse(command.page) if command.page else "",
              command.run, also=command.also)
        for command in _COMMANDS
    ]  # fmt: skip
    return [*own, *site]


def _url(page: str, fragment: str, cluster: Cluster) -> str:
    fragment = fragment if fragment.startswith(("#", "?")) or not fragment else f"#{fragment}"
    return f"{reverse(page, args=[cluster.slug])}{fragment}"
