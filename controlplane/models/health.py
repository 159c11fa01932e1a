"""Health of clusters: newest progress, driver restarts, incidents, skipped batches."""

from django.db import models

from controlplane.models.cluster import Cluster


class ClusterHealth(models.Model):
    """The newest observation of a cluster's data plane, by the agent; at most seconds old.

    `generation` identifies the contents of Redis; `checkpoint`: the name of the directory with the
    newest micro-batch, empty before the first one. `batch`, `position`, `total`, `version`: of the
    newest micro-batch (`total`: records of the log up to it). `unread`: records of the log that no
    micro-batch has read, None if the log is unavailable; `rate`: records/s that micro-batches read.
    `drained_s`: seconds until the backlog is read at the present rates, None if it does not shrink.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="health")
    observed_at = models.DateTimeField()
    generation = models.CharField(max_length=32, blank=True)
    checkpoint = models.CharField(max_length=100, blank=True)
    batch = models.BigIntegerField(null=True, blank=True)
    position = models.CharField(max_length=45, blank=True)
    total = models.BigIntegerField(default=0)
    version = models.PositiveBigIntegerField(default=0)
    unread = models.BigIntegerField(null=True, blank=True)
    rate = models.FloatField(null=True, blank=True)
    drained_s = models.FloatField(null=True, blank=True)
    phase = models.CharField(max_length=100, blank=True)

    def __str__(self) -> str:
        return f"health of {self.cluster_id}"


class DriverRestart(models.Model):
    """An unexpected end of a driver, with its cause.

    `cause`: a code of `workers.agent.deaths`; `detail`: the error line or the measurement;
    `exit_code`: negative for a signal, None if the agent killed the driver. `batch`: the batch in
    progress; `unread`: the backlog in records; `uptime_s`: the driver's uptime.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="restarts")
    at = models.DateTimeField()
    cause = models.CharField(max_length=30)
    detail = models.CharField(max_length=500, blank=True)
    exit_code = models.SmallIntegerField(null=True, blank=True)
    batch = models.BigIntegerField(null=True, blank=True)
    unread = models.BigIntegerField(null=True, blank=True)
    uptime_s = models.FloatField(default=0.0)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["cluster", "-at"], name="restart_by_cluster")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.cause} {self.at:%F %T}"


class Incident(models.Model):
    """A loss that the agent or the beat has detected.

    `lost`, `done`: sentences about the lost data and Weir's reaction; `facts`: their figures. While
    an incident is undecided, the driver does not start; `choices`: the codes that an administrator
    chooses from.
    """

    class Kind(models.TextChoices):
        """The store that was lost or restored from an older backup."""

        REDIS_LOST = "redis-lost", "Redis lost its data"
        REDIS_OLDER = "redis-older", "Redis was restored from an older moment"
        CHECKPOINT_LOST = "checkpoint-lost", "The checkpoint is gone"
        CHECKPOINT_OLDER = "checkpoint-older", "The checkpoint is older than the results"
        DATABASE_OLDER = "database-older", "The database is older than the data plane"

    class State(models.TextChoices):
        """The state of an incident."""

        UNDECIDED = "undecided"
        RESOLVED = "resolved"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="incidents")
    at = models.DateTimeField()
    kind = models.CharField(max_length=20, choices=Kind)
    state = models.CharField(max_length=12, choices=State, default=State.RESOLVED)
    lost = models.JSONField(default=list)
    done = models.JSONField(default=list)
    facts = models.JSONField(default=dict)
    choices = models.JSONField(default=list)
    decision = models.CharField(max_length=30, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["cluster", "-at"], name="incident_by_cluster")]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind"],
                condition=models.Q(state="undecided"),
                name="incident_undecided_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.kind} {self.at:%F %T}"


class SkippedBatch(models.Model):
    """A micro-batch whose records are skipped, because it failed repeatedly.

    It reads the log after position `start` up to position `stop`. `records`: their number by name
    of the stream, `total`: of all. `transfers`: the tasks whose state it transfers, which is not
    lost. `failures`: the number of failed attempts; `cause`: of the last failure. `done_at`: when
    the batch was processed without its records.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="skipped_batches")
    batch = models.BigIntegerField()
    start = models.CharField(max_length=45)
    stop = models.CharField(max_length=45)
    records = models.JSONField(default=dict)
    total = models.BigIntegerField(default=0)
    transfers = models.JSONField(default=list)
    failures = models.PositiveIntegerField(default=0)
    cause = models.CharField(max_length=500, blank=True)
    reason = models.CharField(max_length=500)
    by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-asked_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "batch"], name="skipped_batch_once"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id} batch {self.batch}"
