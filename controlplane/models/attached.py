"""Attached jobs: external Spark applications that report their streaming queries."""

from typing import Any

from django.db import models


class AttachedJob(models.Model):
    """A Spark application that reports with a token of the user `owner` (a user name, as text).

    `application`: Spark's application id. `last_seen`: the time of its last message (Weir's clock);
    `ended_at`: of its reported end. `dropped` counts the events that it discarded, `hour_events`
    those that it reported in the newest `hour`. Whether a job is lost is derived
    (controlplane.integrations.attached_list).
    """

    owner = models.CharField(max_length=150)
    application = models.CharField(max_length=200)
    name = models.CharField(max_length=200)
    spark_version = models.CharField(max_length=40, blank=True)
    first_seen = models.DateTimeField()
    last_seen = models.DateTimeField(db_index=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    dropped = models.PositiveBigIntegerField(default=0)
    hour = models.DateTimeField(null=True, blank=True)
    hour_events = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["-last_seen", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "application"], name="attached_application_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.application})"


class AttachedQuery(models.Model):
    """One run of a streaming query of an attached job, as last reported.

    `query_id`: Spark's id, which restarts from a checkpoint keep; `run_id`: of a run. `sources`: a
    list of {description, rows, input_rate, processed_rate, metrics}, `sink`: {description, rows},
    both of the last batch. `last`: the newest progress, as `AttachedProgress.values`. `detail`: the
    reason of a failure.
    """

    class State(models.TextChoices):
        """The last reported state of the run; the state lost is derived."""

        RUNNING = "running"
        IDLE = "idle"
        TERMINATED = "terminated"
        FAILED = "failed"

    job = models.ForeignKey(AttachedJob, on_delete=models.CASCADE, related_name="queries")
    query_id = models.UUIDField()
    run_id = models.UUIDField()
    name = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING)
    state_at = models.DateTimeField()
    detail = models.TextField(blank=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    last_batch = models.BigIntegerField(null=True, blank=True)
    last_progress_at = models.DateTimeField(null=True, blank=True)
    sources = models.JSONField(default=list, blank=True)
    sink = models.JSONField(default=dict, blank=True)
    last = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-started_at", "-id"]
        verbose_name_plural = "attached queries"
        constraints = [
            models.UniqueConstraint(fields=["job", "run_id"], name="attached_run_once"),
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def title(self) -> str:
        """Return the name of the query, or the start of its id if it has none."""
        return self.name or f"query {str(self.query_id)[:8]}"

    @property
    def over(self) -> bool:
        """Return True if the run has ended."""
        return self.state in (self.State.TERMINATED, self.State.FAILED)


class AttachedProgress(models.Model):
    """One micro-batch of a run, or after 15 minutes the merged batches of a minute.

    `t`: the start of the batch. `values`: t (ms since the epoch), batch, rows, input and processed
    (rows/s), duration_ms, phases (ms by Spark's names), state_rows, state_bytes, state_dropped,
    state_updated, state_partitions (null without state), watermark_ms (null before the first
    event), lags (by source, null if the source reports none), tasks (once in 30 s: how the largest
    shuffle was spread over its partitions).
    """

    query = models.ForeignKey(AttachedQuery, on_delete=models.CASCADE, related_name="progress")
    batch = models.BigIntegerField()
    t = models.DateTimeField()
    values: Any = models.JSONField()

    class Meta:
        ordering = ["query", "t"]
        verbose_name_plural = "attached progress"
        constraints = [
            models.UniqueConstraint(fields=["query", "batch"], name="attached_batch_once"),
        ]
        indexes = [
            models.Index(fields=["query", "t"], name="attached_progress_span"),
            models.Index(fields=["t"], name="attached_progress_age"),
        ]

    def __str__(self) -> str:
        return f"batch {self.batch}"
