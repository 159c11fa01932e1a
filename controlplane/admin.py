"""Django's admin for all models; rows that use cases write are read-only."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from controlplane import models

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    ModelAdmin, TabularInline = admin.ModelAdmin, admin.TabularInline


class ReadOnly(ModelAdmin):
    """Shows rows that only services write: the routing table would not follow an edit here."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False

    has_change_permission = has_delete_permission = has_add_permission


class NodeInline(TabularInline):
    """The nodes on their cluster's page."""

    model = models.Node
    extra = 0
    can_delete = False


@admin.register(models.Cluster)
class ClusterAdmin(ModelAdmin):
    """Clusters with their nodes; versions and positions are the processes' own."""

    list_display = ("slug", "name", "desired", "state", "routing_version", "applied_version")
    readonly_fields = (
        "state", "state_detail", "routing_version", "applied_version", "last_batch",
        "last_sample_at", "created_at",
    )  # fmt: skip
    inlines = (NodeInline,)

    def get_readonly_fields(
        self, request: HttpRequest, obj: models.Cluster | None = None
    ) -> tuple[str, ...]:
        """Return what cannot be edited: while the cluster runs not where its records are, too.

        The number of nodes changes with the routing (`weir clusters nodes`), not here.
        """
        if obj is None:
            return self.readonly_fields
        running = obj.desired == models.Cluster.Desired.RUNNING
        return (*self.readonly_fields, "slots", *(("log_url",) if running else ()))


@admin.register(models.ApiToken)
class ApiTokenAdmin(ModelAdmin):
    """Tokens can be switched off here; manage.py create_token makes them."""

    list_display = ("name", "user", "created_at", "expires_at", "last_used_at")
    readonly_fields = ("digest", "created_at", "last_used_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: a token typed in here would be no secret."""
        return False


# What lists of rows show, filter by, search in, and read beside them.
_LISTS: Final[Mapping[type[Model], Mapping[str, Any]]] = {
    models.Node: {
        "list_display": ("cluster", "index", "name", "capacity", "active"),
        "list_filter": ("cluster",),
    },
    models.Stream: {
        "list_display": ("name", "title", "cluster", "rate", "declared_rate", "split"),
        "list_filter": ("cluster",),
        "search_fields": ("name", "title"),
    },
    models.Query: {
        "list_display": ("name", "cluster", "state", "window_s", "submitted_by", "submitted_at"),
        "list_filter": ("cluster", "state"),
        "search_fields": ("name",),
    },
    models.Task: {
        "list_display": ("query", "index", "node", "since_version"),
        "list_select_related": ("query", "node"),
    },
    models.QueryStream: {
        "list_display": ("query", "stream"),
        "list_select_related": ("query", "stream"),
    },
    models.Drop: {
        "list_display": ("stream", "query", "cluster", "dropped", "set_by", "set_at"),
        "list_filter": ("cluster",),
        "list_select_related": ("stream", "query", "cluster"),
    },
    models.RoutingVersion: {
        "list_display": (
            "cluster", "version", "reason", "created_at", "published_at", "applied_at",
        ),
        "list_filter": ("cluster",),
    },
    models.Proposal: {
        "list_display": ("id", "cluster", "algorithm", "state", "requested_by", "requested_at"),
        "list_filter": ("cluster", "state"),
    },
    models.MetricSample: {
        "list_display": ("cluster", "resolution", "t"),
        "list_filter": ("cluster", "resolution"),
    },
    models.AuditEntry: {
        "list_display": ("at", "actor", "address", "cluster", "action", "object", "reason"),
        "list_filter": ("cluster", "action"),
        "search_fields": ("actor", "object", "reason"),
    },
    models.LabRun: {
        "list_display": ("id", "planner", "experiment", "state", "requested_by", "requested_at"),
        "list_filter": ("planner", "experiment", "state"),
    },
    models.AttachedJob: {
        "list_display": ("name", "application", "owner", "spark_version", "last_seen", "ended_at"),
        "list_filter": ("owner",),
        "search_fields": ("name", "application"),
    },
    models.AttachedQuery: {
        "list_display": ("title", "job", "state", "started_at", "last_progress_at"),
        "list_filter": ("state",),
        "list_select_related": ("job",),
    },
    models.AttachedProgress: {
        "list_display": ("query", "batch", "t"),
        "list_select_related": ("query",),
    },
}  # fmt: skip
for _model, _options in _LISTS.items():
    admin.site.register(_model, ReadOnly, **_options)
