"""Skipped batches with their losses."""

from django.db import models

from controlplane.models.cluster import Cluster


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
