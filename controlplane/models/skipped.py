"""Skipped batches with their losses."""

from django.db import models

from controlplane.models.cluster import Cluster


class SkippedBatch(models.Model):
    """A micro-batch whose records are skipped, because it failed repeatedly.

    It reads the log behind position start up to position stop; records counts its records by the
    name of the stream, total in all; transfers are the tasks that hand their state on in it, or
    did in the batch before: they are not lost. failures counts the attempts that failed, cause is
    how the last one ended. done_at is when the batch was processed without its records.
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
