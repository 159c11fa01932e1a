"""Webhooks and their messages."""

from django.db import models
from django.db.models import Q

from controlplane.models.cluster import Cluster


class Webhook(models.Model):
    """A URL that receives events of some kinds, of one cluster or (cluster None) of all.

    The secret that signs messages is derived from `salt` and the site's secret
    (integrations.webhooks), and `credential` is the name of a secret of the site, so a copy of the
    database cannot sign. The sending worker holds a lease until `busy_until`; after consecutive
    failures, sending pauses until `rests_until`.
    """

    class Kind(models.TextChoices):
        """The kinds of events that a webhook can subscribe to."""

        PROPOSALS = "proposals"
        EXECUTIONS = "executions"
        ALERTS = "alerts"

    name = models.CharField(max_length=100)
    format = models.CharField(max_length=20, default="weir")
    credential = models.CharField(max_length=60, blank=True)
    url = models.CharField(max_length=500)
    kinds = models.JSONField(default=list)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, null=True, blank=True, related_name="webhooks"
    )
    active = models.BooleanField(default=True)
    salt = models.CharField(max_length=32)
    busy_until = models.DateTimeField(null=True, blank=True)
    rests_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """A message to a webhook; `event`: the event's id, equal for all webhooks and attempts.

    `body`: the bytes of the request. `next_at`: the time of the next attempt. `status`: of the last
    response; `error`: the reason of the last failure.
    """

    class State(models.TextChoices):
        """The state of a delivery."""

        WAITING = "waiting"
        DELIVERED = "delivered"
        FAILED = "failed"

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.UUIDField()
    kind = models.CharField(max_length=20)
    body = models.TextField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["webhook", "event"], name="delivery_once"),
        ]
        indexes = [
            models.Index(
                fields=["next_at"], condition=Q(state="waiting"), name="delivery_by_due_time"
            ),
            models.Index(fields=["webhook", "-created_at", "-id"], name="delivery_by_age"),
            models.Index(fields=["created_at"], name="delivery_by_birth"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} to {self.webhook_id}"
