"""Policies: what applies by itself, who approves, how far a cluster may drift, how fast to move."""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from controlplane.models.cluster import Cluster

_SHARE = [MinValueValidator(0.0), MaxValueValidator(1.0)]
_POSITIVE = [MinValueValidator(1)]
# Which role decides on proposals.
APPROVERS = [(role, role) for role in ("operator", "approver", "admin")]


def kinds_without_state() -> list[str]:
    """Return the kinds of plans that move no operator state: stream redirects, armed ladders."""
    return ["admission", "shedding"]


class Policy(models.Model):
    """The policy of one cluster; a cluster without a row has the defaults.

    What applies by itself: proposals of auto_kinds with at most auto_moves moves and auto_bytes of
    state that lower the imbalance by auto_gain at least (a share of what it was), on auto_days (0
    is Monday) between auto_from and auto_until (UTC), if the planner's record is good where
    auto_record asks for it: auto_record_runs executed plans whose predictions were off by
    auto_record_error at most, in the median. auto_asked: also those that people asked for.

    approvers: the role that approves; four_eyes: who asks may not. starts: an approved proposal
    begins by itself.

    Tolerances of drift since the snapshot, as shares: rates, and queries that ended or came.

    Caps: moves at once per node and in all, bytes of state per second, and the longest pause of a
    task (ms). The cap in force follows the latency: it is halved where the p95 exceeds
    latency_ms, and grows by one per step where it does not.

    The watch loops act on an imbalance above watch_imbalance, a replication factor above
    watch_replication times its lower bound, and latency_ms; dead_band is by how much a figure must
    be back below its bound before it counts as mended, cooldown_s the least time between two of
    their proposals. watch: off, recommend, or act where what applies by itself allows it.
    """

    class Watch(models.TextChoices):
        """What the watch loops do."""

        OFF = "off"
        RECOMMEND = "recommend"
        ACT = "act"

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="policy")
    auto_kinds = models.JSONField(default=kinds_without_state, blank=True)
    auto_asked = models.BooleanField(default=True)
    auto_moves = models.PositiveIntegerField(default=50)
    auto_bytes = models.PositiveBigIntegerField(default=10_000_000)
    auto_gain = models.FloatField(default=0.05, validators=_SHARE)
    auto_days = models.JSONField(default=list, blank=True)
    auto_from = models.TimeField(null=True, blank=True)
    auto_until = models.TimeField(null=True, blank=True)
    auto_record = models.BooleanField(default=False)
    auto_record_runs = models.PositiveIntegerField(default=5)
    auto_record_error = models.FloatField(default=0.25, validators=[MinValueValidator(0.0)])
    approvers = models.CharField(max_length=10, choices=APPROVERS, default="approver")
    four_eyes = models.BooleanField(default=False)
    starts = models.BooleanField(default=True)
    tolerated_rates = models.FloatField(default=0.5, validators=[MinValueValidator(0.0)])
    tolerated_ended = models.FloatField(default=0.5, validators=_SHARE)
    tolerated_new = models.FloatField(default=0.5, validators=[MinValueValidator(0.0)])
    node_moves = models.PositiveIntegerField(default=10, validators=_POSITIVE)
    cluster_moves = models.PositiveIntegerField(default=40, validators=_POSITIVE)
    bytes_per_s = models.PositiveBigIntegerField(default=50_000_000, validators=_POSITIVE)
    pause_ms = models.PositiveIntegerField(default=10_000, validators=_POSITIVE)
    latency_ms = models.PositiveIntegerField(default=10_000, validators=_POSITIVE)
    watch = models.CharField(max_length=10, choices=Watch, default=Watch.RECOMMEND)
    watch_imbalance = models.FloatField(default=0.2, validators=[MinValueValidator(0.0)])
    watch_replication = models.FloatField(default=1.5, validators=[MinValueValidator(1.0)])
    dead_band = models.FloatField(default=0.1, validators=_SHARE)
    cooldown_s = models.PositiveIntegerField(default=600)
    changed_by = models.CharField(max_length=150, blank=True)
    changed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return f"policy of {self.cluster_id}"


class Blackout(models.Model):
    """When nothing begins by itself: minutes after each moment of a cron line, or a range (UTC)."""

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
    """What no plan may move until it expires: a query, what is on a node, or reads a stream.

    subject is the query's, node's or stream's name.
    """

    class Kind(models.TextChoices):
        """What is excluded."""

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
