"""Saved views of lists, and bulk actions on queries."""

from django.conf import settings
from django.db import models

from controlplane.models.cluster import Cluster


class SavedView(models.Model):
    """A filter text and an order of a list under a name; a default one opens with the list.

    `list`: the name of a kind (controlplane.lists.kinds); it holds on every cluster.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    list = models.CharField(max_length=20)
    name = models.CharField(max_length=60)
    filter = models.CharField(max_length=500, blank=True)
    order = models.CharField(max_length=30, blank=True)
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["list", "name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "list", "name"], name="saved_view_name_once"),
            models.UniqueConstraint(
                fields=["user", "list"],
                condition=models.Q(is_default=True),
                name="saved_view_default_once",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class BulkAction(models.Model):
    """An action on many queries: those of a filter text, or named ones.

    `filter`: the text, empty for named queries; `total`: the number of queries at its start,
    `done`: of those that are processed, `failed`: of those that could not be changed. `source`: the
    bulk action whose queries this one restores.
    """

    class Kind(models.TextChoices):
        """What is done with the queries."""

        END = "end"
        RESTORE = "restore"

    class State(models.TextChoices):
        """The state of the action."""

        RUNNING = "running"
        DONE = "done"
        CANCELLED = "cancelled"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="bulk_actions")
    kind = models.CharField(max_length=10, choices=Kind)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    filter = models.CharField(max_length=500, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    total = models.PositiveIntegerField(default=0)
    done = models.PositiveIntegerField(default=0)
    failed = models.PositiveIntegerField(default=0)
    # The queries up to this id are processed.
    last_query = models.PositiveBigIntegerField(default=0)
    source = models.ForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="restorations"
    )
    requested_by = models.CharField(max_length=150)
    requested_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-requested_at", "-id"]
        indexes = [models.Index(fields=["cluster", "-requested_at"], name="bulk_action_by_age")]

    def __str__(self) -> str:
        return f"{self.kind} {self.total} queries"
