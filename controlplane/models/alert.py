"""Alerts of clusters, what placement reaches of their measures, and visits of users."""

from typing import Final

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from controlplane.models.cluster import Cluster


class ReachableMeasures(models.Model):
    """What the best placement that was found of a cluster's queries reaches, whatever it moves.

    It exceeds the limits of imbalance and load as little as possible, then has the least
    replication factor. `took_s`: the duration of the computation.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="reachable")
    version = models.PositiveBigIntegerField()
    computed_at = models.DateTimeField()
    took_s = models.FloatField()
    replication_factor = models.FloatField()
    imbalance = models.FloatField()
    fullest = models.FloatField()

    def __str__(self) -> str:
        return f"{self.replication_factor:.2f}"


class Alert(models.Model):
    """A limit of a cluster's policy that a measure exceeds, or exceeded.

    `subject`: the measure, or "application" for a failed Spark application. `since`: the beginning
    of the excess; `fired_at`: the end of the hold time. `within_since`: since when the value is
    within the limit again; the alert is cleared after the hold time. `value`: at the last
    evaluation, `worst`: the farthest beyond the limit, `worst_limit`: the limit then; `node`: the
    index of the fullest node. `silenced_until`: notifications and the count of clusters omit the
    alert until then.
    """

    class State(models.TextChoices):
        """Pending: not yet for the hold time."""

        PENDING = "pending"
        FIRING = "firing"
        CLEARED = "cleared"

    OPEN: Final = (State.PENDING, State.FIRING)

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="alerts")
    subject = models.CharField(max_length=30)
    state = models.CharField(max_length=10, choices=State, default=State.PENDING)
    value = models.FloatField(null=True, blank=True)
    worst = models.FloatField(null=True, blank=True)
    limit = models.FloatField(null=True, blank=True)
    worst_limit = models.FloatField(null=True, blank=True)
    node = models.PositiveSmallIntegerField(null=True, blank=True)
    detail = models.CharField(max_length=300, blank=True)
    since = models.DateTimeField()
    fired_at = models.DateTimeField(null=True, blank=True)
    within_since = models.DateTimeField(null=True, blank=True)
    cleared_at = models.DateTimeField(null=True, blank=True)
    evaluated_at = models.DateTimeField()
    acknowledged_by = models.CharField(max_length=150, blank=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=500, blank=True)
    silenced_by = models.CharField(max_length=150, blank=True)
    silenced_until = models.DateTimeField(null=True, blank=True)
    silence_reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-since", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "subject"], condition=Q(cleared_at=None), name="alert_open_once"
            ),
            models.CheckConstraint(
                condition=Q(cleared_at=None) | Q(cleared_at__gte=F("since")),
                name="alert_clears_after_it_begins",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "-since"], name="alert_by_cluster"),
            models.Index(fields=["cleared_at"], name="alert_by_end"),
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.state}"


class Visit(models.Model):
    """The visits of the fleet page by a user: the beginning of the present and end of the last."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="visit"
    )
    last_end = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.seen_at:%Y-%m-%d %H:%M}"
