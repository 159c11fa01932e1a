"""Django's admin: users and groups, recorded in the audit log; all rows of Weir, read-only."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import UserChangeForm
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.db.models import Model
from django.http import HttpRequest

from controlplane import models
from controlplane.access.accounts import record_account
from controlplane.access.grants import is_granted_admin, is_last_admin
from controlplane.access.roles import ADMIN, LOCAL_APPROVER, ROLES, actor_of

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
    TabularInline = admin.TabularInline[Any, Any]
else:
    ModelAdmin, TabularInline = admin.ModelAdmin, admin.TabularInline


class ReadOnly(ModelAdmin):
    """Shows rows that services write, without a way to change them.

    A change here would go around roles on clusters, checks, the audit log and publication. Every
    model of Weir is registered with this class.
    """

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False

    has_change_permission = has_delete_permission = has_add_permission


class NodeInline(TabularInline):
    """The nodes on their cluster's page."""

    model = models.Node
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse."""
        return False

    has_change_permission = has_delete_permission = has_add_permission


@admin.register(models.Cluster)
class ClusterAdmin(ReadOnly):
    """Clusters with their nodes."""

    list_display = ("slug", "name", "desired", "state", "routing_version", "applied_version")
    # It may contain a password.
    exclude = ("log_url",)
    inlines = (NodeInline,)


@admin.register(models.ApiToken)
class ApiTokenAdmin(ReadOnly):
    """Tokens of all users, without their digests; an inactive user's tokens are refused."""

    list_display = ("name", "user", "role", "cluster", "created_at", "expires_at", "last_used_at")
    exclude = ("digest",)


class AuditedAdmin(ModelAdmin):
    """Records each change in the audit log, besides Django's own history."""

    def log_addition(self, request: HttpRequest, object: Any, message: Any) -> Any:  # noqa: A002
        """Record a new row."""
        self._record(request, object, "add")
        return super().log_addition(request, object, message)

    def log_change(self, request: HttpRequest, object: Any, message: Any) -> Any:  # noqa: A002
        """Record a changed row."""
        self._record(request, object, "change")
        return super().log_change(request, object, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Record deleted rows."""
        for row in queryset:
            self._record(request, row, "delete")
        return super().log_deletions(request, queryset)

    def _record(self, request: HttpRequest, row: Any, verb: str) -> None:
        record_account(actor_of(request), row, verb)


class UserForm(UserChangeForm):  # type: ignore[type-arg]
    """The form of a user; the last admin stays an active admin."""

    def clean(self) -> dict[str, Any]:
        """Refuse to take the role admin from the last user who has it on all clusters."""
        cleaned: dict[str, Any] = super().clean() or {}
        names = {group.name for group in cleaned.get("groups") or ()}
        stays = cleaned.get("is_superuser") or ADMIN in names or is_granted_admin(self.instance)
        if not (stays and cleaned.get("is_active")) and is_last_admin(self.instance):
            text = "Nobody would be admin of all clusters: give the role to another user first"
            raise ValidationError(text, code="last_admin")
        return cleaned


admin.site.unregister((User, Group))


@admin.register(User)
class RecordedUserAdmin(AuditedAdmin, UserAdmin):  # type: ignore[type-arg]
    """Users: accounts, groups and passwords; grants have a page of their own."""

    form = UserForm

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        """Return the user, whose new password is recorded as set by the actor."""
        row = super().get_object(request, *args)
        if row is not None:
            row.changed_by = actor_of(request)
        return row

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save the user, new ones with who makes them."""
        obj.changed_by = actor_of(request)
        super().save_model(request, obj, form, change)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete several users at once, and the last admin."""
        if obj is None or is_last_admin(obj):
            return False
        return bool(super().has_delete_permission(request, obj))


@admin.register(Group)
class RecordedGroupAdmin(AuditedAdmin, GroupAdmin):
    """Groups; those that are roles keep their names."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return the name of a group that is a role."""
        return ("name",) if _is_role(obj) else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete several groups at once, and those that are roles."""
        return obj is not None and not _is_role(obj) and super().has_delete_permission(request, obj)


def _is_role(group: Any) -> bool:
    return group is not None and group.name in (*ROLES, LOCAL_APPROVER)


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
    models.SeriesPeriod: {
        "list_display": ("cluster", "scope", "seconds", "t", "measured_s"),
        "list_filter": ("cluster", "scope", "seconds"),
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
