"""Counts of routine actions by tokens that the audit log has in one entry per period."""

from django.db import models

from controlplane.models.cluster import Cluster


class RoutineActions(models.Model):
    """The number of equal actions by one user or token in a period; `actor`: a user name.

    `key`: the digest of what is equal (`controlplane.access.routine_actions`).
    """

    key = models.CharField(max_length=64)
    actor = models.CharField(max_length=150)
    token = models.PositiveBigIntegerField(null=True)
    action = models.CharField(max_length=60)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, null=True, related_name="routine_actions"
    )
    # The start of the period.
    period = models.DateTimeField()
    count = models.PositiveBigIntegerField(default=0)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    last_object = models.CharField(max_length=200, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        ordering = ["-period", "id"]
        verbose_name_plural = "routine actions"
        constraints = [
            models.UniqueConstraint(fields=["key", "period"], name="routine_actions_once"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} ({self.count})"
