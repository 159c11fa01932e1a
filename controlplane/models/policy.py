"""Policies: which plans are approved automatically, who approves, and how fast plans execute."""

from django.db import models
from django.db.models import Q

from controlplane.models.cluster import Cluster


class Policy(models.Model):
    """The policy of a cluster; without a row it has the defaults.

    `settings`: changed settings as JSON; `controlplane.policies.settings` declares them.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="policy")
    settings = models.JSONField(default=dict, blank=True)
    changed_by = models.CharField(max_length=150, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return f"policy of {self.cluster_id}"


class Blackout(models.Model):
    """A blackout: minutes after each time of a cron line, or a time range (UTC)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="blackouts")
    cron = models.CharField(max_length=100, blank=True)
    minutes = models.PositiveIntegerField(default=0)
    starts_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=300)
    owner = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["cluster", "starts_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=(~Q(cron="") & Q(minutes__gt=0, starts_at=None, ends_at=None))
                | Q(cron="", starts_at__isnull=False, ends_at__gt=models.F("starts_at")),
                name="blackout_is_cron_or_range",
            ),
        ]

    def __str__(self) -> str:
        return f"blackout {self.cron or self.starts_at}"


class Exclusion(models.Model):
    """An exclusion from plans until it expires: of a query, a node, or a stream's readers.

    `subject`: the name of the query, node or stream.
    """

    class Kind(models.TextChoices):
        """The kind of an excluded object."""

        QUERY = "query"
        NODE = "node"
        STREAM = "stream"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="exclusions")
    kind = models.CharField(max_length=6, choices=Kind)
    subject = models.CharField(max_length=100)
    reason = models.CharField(max_length=300)
    owner = models.CharField(max_length=150)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        ordering = ["cluster", "expires_at"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind", "subject"], name="exclusion_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
