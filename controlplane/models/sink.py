"""Sinks of queries, and the results that their destinations refused."""

from django.db import models
from django.db.models import Q

from controlplane.models.query import Query

# The kind of sinks that write to a stream of the cluster, which `settings["stream"]` names.
STREAM_KIND = "stream"


class Sink(models.Model):
    """A destination that receives the results of a query.

    `settings`: the validated settings of its kind, without secrets. `uid` names it in destinations.
    `epoch` counts replays: a destination's cursor of an earlier one is not used. `position`: a copy
    of the cursor (results.feed.FeedPlace). `version` grows with each change by people, whereupon
    the sink is opened again; the process `holder` writes it until `leased_until`. Counts are of
    results; `lost`: deleted by retention before the sink has read them. `caught_up_at`: when it
    last had nothing to read.
    """

    class Mode(models.TextChoices):
        """Which results are written."""

        FINAL_ONLY = "final_only"
        EVERY_CHANGE = "every_change"

    class Corrections(models.TextChoices):
        """What happens to a change of a result that was written as final."""

        UPDATE = "update"
        COUNT = "count"

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="sinks")
    name = models.CharField(max_length=60)
    kind = models.CharField(max_length=20)
    settings = models.JSONField(default=dict)
    mode = models.CharField(max_length=15, choices=Mode, default=Mode.FINAL_ONLY)
    corrections = models.CharField(max_length=10, choices=Corrections, default=Corrections.UPDATE)
    paused = models.BooleanField(default=False)
    uid = models.UUIDField(unique=True)
    epoch = models.PositiveIntegerField(default=1)
    version = models.PositiveIntegerField(default=1)
    position = models.TextField()
    written = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)
    corrected = models.PositiveBigIntegerField(default=0)
    lost = models.PositiveBigIntegerField(default=0)
    lost_at = models.DateTimeField(null=True, blank=True)
    written_at = models.DateTimeField(null=True, blank=True)
    caught_up_at = models.DateTimeField()
    error = models.CharField(max_length=300, blank=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    holder = models.CharField(max_length=40, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["query", "name"], name="sink_name_once"),
            models.CheckConstraint(condition=Q(epoch__gte=1), name="sink_epoch_from_one"),
        ]

    def __str__(self) -> str:
        return self.name


class RefusedResult(models.Model):
    """A dead letter: a result that a destination refused; `place`: of its window (as bytes).

    `requested`: whether someone requested that it is written again.
    """

    sink = models.ForeignKey(Sink, on_delete=models.CASCADE, related_name="refused_results")
    place = models.BinaryField(max_length=4_000)
    reason = models.CharField(max_length=300)
    row = models.JSONField()
    requested = models.BooleanField(default=False)
    refused_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["sink", "place"], name="refused_result_once"),
        ]

    def __str__(self) -> str:
        return f"{self.sink_id}: {self.reason}"
