"""Clusters with their nodes and streams, and scenarios of demo clusters."""

import os
import re

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Q

from controlplane.wire.errors import BadLogUrl
from controlplane.wire.log.address import check_url
from controlplane.wire.network import destinations
from controlplane.wire.routing.split_assignment import SplitAssignment, assigned

_PORT = r":[0-9]{1,5}"
_HOST = r"[A-Za-z0-9.\-]{1,100}"
# The kinds of masters of Spark.
MASTER = RegexValidator(
    rf"\A(local\[(\*|[1-9][0-9]?)\]|yarn|k8s://https?://{_HOST}{_PORT}"
    rf"|spark://{_HOST}{_PORT}(,{_HOST}{_PORT})*)\Z",
    "Must be local[n], spark://host:port, yarn or k8s://https://host:port",
)


def is_allowed_master(master: str) -> bool:
    """Return whether the site allows it: so many cores of this machine, or WEIR_DESTINATIONS.

    A driver gives its master the address and password of Redis.
    """
    local = re.fullmatch(r"local\[(\*|[0-9]+)\]", master)
    if local is None:
        return master in destinations.masters()
    return (os.cpu_count() or 1 if local[1] == "*" else int(local[1])) <= settings.LOCAL_CORES


def valid_master(master: str) -> None:
    """Raise `ValidationError` unless it is the URL of a master that the site allows."""
    MASTER(master)
    if not is_allowed_master(master):
        allowed = ", ".join([f"local[n] up to {settings.LOCAL_CORES}", *destinations.masters()])
        names = "settings WEIR_LOCAL_CORES and WEIR_DESTINATIONS"
        raise ValidationError(f"Is not a master of this site: {allowed} ({names})", "not_allowed")


def valid_log_url(url: str) -> None:
    """Raise `ValidationError` unless the URL is that of a log."""
    try:
        check_url(url)
    except BadLogUrl as error:
        raise ValidationError(str(error)) from error


class Cluster(models.Model):
    """A Spark Structured Streaming application with its nodes, streams and queries.

    `desired`: the requested state, `state`: the last observed one. `routing_version`: the newest
    version, `applied_version`: the newest one that a micro-batch has used. `telemetry_position`,
    `progress_position`: the relay's positions in the Redis streams, stored with the samples, so
    that no row is counted twice. `master`: the Spark master; `log_url`: the URL of the log (empty
    for the site's Redis); `log_limit_mb`: the limit of unread records (MiB). `slots`: the number
    of nodes. `split_capacity`: records/s of each split node, 0: measured; `split_emulated`: the
    pipeline limits split nodes to it; `split_capacity_at`: since when they are so, None for always.
    `partitions`: Spark's, of new checkpoints, None for the number of cores of the master.
    `max_records`, `max_batch_mb` (MiB): the limits of a micro-batch. `demo`: the demonstration that
    feeds the cluster, empty for none.
    """

    class Desired(models.TextChoices):
        """The requested state."""

        RUNNING = "running"
        STOPPED = "stopped"

    class State(models.TextChoices):
        """The last observed state of the application."""

        STARTING = "starting"
        RUNNING = "running"
        CATCHING_UP = "catching up"
        DEGRADED = "degraded"
        STUCK = "stuck"
        STOPPED = "stopped"
        FAILED = "failed"
        CRASH_LOOP = "crash loop"
        NEEDS_DECISION = "needs decision"

    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=100)
    description = models.TextField(blank=True)
    desired = models.CharField(max_length=10, choices=Desired, default=Desired.STOPPED)
    state = models.CharField(max_length=20, choices=State, default=State.STOPPED)
    state_detail = models.TextField(blank=True)
    state_at = models.DateTimeField(null=True, blank=True, editable=False)
    slots = models.PositiveSmallIntegerField(default=4, validators=[MinValueValidator(1)])
    splits = models.PositiveSmallIntegerField(default=2, validators=[MinValueValidator(1)])
    split_capacity = models.FloatField(default=0.0, validators=[MinValueValidator(0.0)])
    split_emulated = models.BooleanField(default=False)
    split_capacity_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The relaxation ratio of the placement paper (section 2), and its additive slack alpha.
    nu = models.FloatField(default=0.05, validators=[MinValueValidator(0.0)])
    alpha = models.FloatField(default=10.0, validators=[MinValueValidator(0.0)])
    routing_version = models.PositiveBigIntegerField(default=0)
    applied_version = models.PositiveBigIntegerField(default=0)
    trigger_ms = models.PositiveIntegerField(default=1000)
    master = models.CharField(max_length=200, default="local[2]", validators=[valid_master])
    log_url = models.CharField(max_length=300, blank=True, validators=[valid_log_url])
    log_limit_mb = models.PositiveIntegerField(default=512, validators=[MinValueValidator(1)])
    partitions = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1), MaxValueValidator(256)]
    )
    max_records = models.PositiveIntegerField(
        default=200_000, validators=[MinValueValidator(1_000), MaxValueValidator(10_000_000)]
    )
    max_batch_mb = models.PositiveIntegerField(
        default=64, validators=[MinValueValidator(1), MaxValueValidator(1024)]
    )
    demo = models.CharField(max_length=40, blank=True, editable=False)
    last_batch = models.BigIntegerField(null=True, blank=True)
    last_sample_at = models.DateTimeField(null=True, blank=True)
    telemetry_position = models.CharField(max_length=45, default="0-0", editable=False)
    progress_position = models.CharField(max_length=45, default="0-0", editable=False)
    read_position = models.CharField(max_length=45, default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug


class DeletedCluster(models.Model):
    """The slug of a deleted cluster, until the agent has removed its checkpoints."""

    slug = models.SlugField(max_length=40, unique=True)
    deleted_at = models.DateTimeField()

    class Meta:
        ordering = ["deleted_at"]

    def __str__(self) -> str:
        return self.slug


class Node(models.Model):
    """A state partition of the application; hosts tasks; capacity in records/s.

    `emulated`: the pipeline limits the node to its capacity, to test unequal and slow nodes;
    records beyond it wait. `hosted`: whether it hosted tasks at a change of the routing since
    it became active.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="nodes")
    index = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=60)
    capacity = models.FloatField(default=500.0, validators=[MinValueValidator(0.001)])
    emulated = models.BooleanField(default=False)
    active = models.BooleanField(default=True)
    hosted = models.BooleanField(default=False, editable=False)

    class Meta:
        ordering = ["cluster", "index"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "index"], name="node_index_once"),
            models.CheckConstraint(
                condition=models.Q(capacity__gt=0), name="node_capacity_positive"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Stream(models.Model):
    """A source of the placement paper; its pk is the stream id on the wire; rates in records/s.

    `schema`: a `wire.schema.StreamSchema` as JSON. `source`: of `wire.sources.kinds` as
    JSON, empty for a stream in the log of the cluster. `partition_splits`: the split node of the
    partitions of its source that are assigned explicitly, by number. `retired`: the last types of
    removed columns by name, as records of the log may still have them. `meta`: free labels.
    `characteristics`: a `StreamMetadata` as JSON. `forecaster`: a `ForecasterChoice` as JSON, empty
    before a first fit; `fitted_at`: the last fit. `mean_rate`: over the last hour; `record_bytes`:
    of a record in the log, by its newest block; both at `measured_at`, null before. `reader_count`:
    of live queries that read it, changed with them (controlplane.catalog.reader_counts).
    `late_records`: all records that came later than its watermark delay allows; `late_at`: the last
    of them.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="streams")
    name = models.CharField(max_length=100)
    title = models.CharField(max_length=200, blank=True)
    schema = models.JSONField(default=dict, blank=True)
    source = models.JSONField(default=dict, blank=True)
    retired = models.JSONField(default=dict, blank=True)
    declared_rate = models.FloatField(null=True, blank=True)
    rate = models.FloatField(null=True, blank=True)
    split = models.PositiveSmallIntegerField(default=0)
    partition_splits = models.JSONField(default=dict, blank=True)
    meta = models.JSONField(default=dict, blank=True)
    characteristics = models.JSONField(default=dict, blank=True)
    forecaster = models.JSONField(default=dict, blank=True)
    fitted_at = models.DateTimeField(null=True, blank=True)
    mean_rate = models.FloatField(default=0.0)
    record_bytes = models.FloatField(default=0.0)
    measured_at = models.DateTimeField(null=True, blank=True)
    reader_count = models.IntegerField(default=0)
    late_records = models.BigIntegerField(default=0)
    late_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="stream_name_once"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def assignment(self) -> SplitAssignment:
        """Return the split nodes of the stream and its partitions."""
        own = assigned([(self.pk, self.partition_splits)])
        return SplitAssignment({self.pk: self.split}, own, self.cluster.splits)

    @property
    def weight(self) -> float:
        """Return w(s) of the placement paper: the measured rate, else the declared one, else 1."""
        return self.rate or self.declared_rate or 1.0


class Scenario(models.Model):
    """A disturbance of a demo cluster from `started_at` to `ends_at`, or to `ended_at` if earlier.

    `node`: the index of the node that it is about. `ended_at`: None while it is in effect.
    `ended_by`: "" until then. `note`: what its end did not revert. `factors`: how many times as
    many records streams have, by name ("*": all). `before`: what its end sets again.
    """

    class Kind(models.TextChoices):
        """What happens in the pipeline."""

        RUSH_HOUR = "rush_hour", "Rush hour"
        HOT_KEY = "hot_key", "Hot key"
        SLOW_NODE = "slow_node", "Slow node"
        NODE_LOST = "node_lost", "Node lost"
        NODE_ADDED = "node_added", "Node added"
        UNEVEN_QUERIES = "uneven_queries", "Uneven queries"
        NODE_RETURNS = "node_returns", "Nodes return"
        GROWING_STREAM = "growing_stream", "Growing stream"
        OVERLOAD = "overload", "Overload"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="scenarios")
    kind = models.CharField(max_length=20, choices=Kind)
    node = models.PositiveSmallIntegerField(null=True, blank=True)
    factors = models.JSONField(default=dict, blank=True)
    before = models.JSONField(default=dict, blank=True)
    started_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    started_by = models.CharField(max_length=150)
    ended_by = models.CharField(max_length=150, blank=True)
    note = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["-started_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind"], condition=Q(ended_at=None), name="scenario_open_once"
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("started_at")), name="scenario_ends_after_its_start"
            ),
        ]
        indexes = [models.Index(fields=["cluster", "-started_at"], name="scenario_by_cluster")]

    def __str__(self) -> str:
        return f"{self.kind}, {self.started_at:%Y-%m-%d %H:%M}"


class TourProgress(models.Model):
    """The tour of a user on a demo cluster.

    The steps follow from what has happened on the cluster since `started_at`; only the pages that
    the user has opened are stored: `explained_at`, `read_at` (a proposal), `proved_at` (an executed
    proposal). `dismissed_at`: None while the tour is shown.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tour"
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="tours")
    started_at = models.DateTimeField()
    explained_at = models.DateTimeField(null=True, blank=True)
    read_at = models.DateTimeField(null=True, blank=True)
    proved_at = models.DateTimeField(null=True, blank=True)
    dismissed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d %H:%M}"


class FollowedFile(models.Model):
    """A file of WEIR_DESCRIPTIONS against the cluster that it describes, as compared last.

    `digest`, `audit_id`: the file's sha256 and the newest audit entry of the cluster that were
    compared. `changed_by`: who made the difference. `report`: the first changed names and fields;
    `faults`: messages by place in the file.
    """

    class State(models.TextChoices):
        """Whether the cluster is as described."""

        SYNCED = "synced"
        OUT_OF_SYNC = "out of sync"
        FAULTY = "faulty"

    name = models.CharField(max_length=255, unique=True)
    slug = models.CharField(max_length=40, blank=True)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.SET_NULL, null=True, blank=True, related_name="followed_files"
    )
    state = models.CharField(max_length=12, choices=State)
    since = models.DateTimeField()
    checked_at = models.DateTimeField()
    changed_by = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=64, blank=True)
    audit_id = models.BigIntegerField(default=0)
    changes = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict, blank=True)
    faults = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
