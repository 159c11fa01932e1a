"""The routing table's history, one row per version."""

from django.db import models

from controlplane.models.cluster import Cluster
from controlplane.models.proposal import Proposal


class RoutingVersion(models.Model):
    """The change from the previous version, as the wire's operations; `actor`: a user name.

    `traceparent`: the trace of the request that caused it, "" if it is not traced.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="routing_versions")
    version = models.PositiveBigIntegerField()
    ops = models.JSONField(default=list)
    reason = models.CharField(max_length=300)
    actor = models.CharField(max_length=150, blank=True)
    proposal = models.ForeignKey(
        Proposal, on_delete=models.PROTECT, null=True, blank=True, related_name="routing_versions"
    )
    traceparent = models.CharField(max_length=55, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    published_at = models.DateTimeField(null=True, blank=True)
    applied_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["cluster", "-version"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "version"], name="routing_version_once"),
        ]
        indexes = [
            models.Index(
                fields=["cluster", "version"],
                condition=models.Q(published_at__isnull=True),
                name="routing_unpublished",
            ),
            models.Index(
                fields=["cluster", "version"],
                condition=models.Q(applied_at__isnull=True),
                name="routing_unapplied",
            ),
            models.Index(fields=["cluster", "created_at"], name="routing_by_age"),
        ]

    def __str__(self) -> str:
        return f"version {self.version}"
