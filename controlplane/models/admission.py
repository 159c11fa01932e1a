"""Forecasts of streams, and their redirections to other split nodes."""

from django.db import models

from controlplane.models.cluster import Cluster, Stream
from controlplane.wire.routing.split_assignment import SourcePartition


class StoredForecast(models.Model):
    """The forecast of all streams of a cluster, as it was computed last; one row per cluster.

    `starts_at`: the start of its first period, null before the first record; `seconds`: of one
    period; `capacity`: records/s of each split node, 0 if it is not known. `basis`: the settings
    that it depends on. `moves`: the redirections that were planned, as rows of stream, partition
    and split node. `data`: ids and expected records/s of the streams, see
    admission.cluster_forecast.
    """

    cluster = models.OneToOneField(
        Cluster, on_delete=models.CASCADE, related_name="stored_forecast"
    )
    computed_at = models.DateTimeField()
    starts_at = models.DateTimeField(null=True, blank=True)
    seconds = models.PositiveIntegerField()
    capacity = models.FloatField(default=0.0)
    basis = models.CharField(max_length=200)
    moves = models.JSONField(default=list)
    data = models.BinaryField()

    class Meta:
        ordering = ["cluster"]

    def __str__(self) -> str:
        return f"forecast of {self.cluster_id} at {self.computed_at:%F %T}"


class Redirection(models.Model):
    """A redirection of a stream from a split node to another.

    `partition`: the number of the partition of its source that is redirected, None: the stream.
    `version`: the first routing version with the new split node; `reason`: a sentence; `actor`: who
    decided.
    """

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="redirections")
    at = models.DateTimeField()
    source = models.PositiveSmallIntegerField()
    target = models.PositiveSmallIntegerField()
    partition = models.PositiveIntegerField(null=True, blank=True)
    version = models.PositiveBigIntegerField()
    reason = models.CharField(max_length=300, blank=True)
    actor = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["stream", "-at"], name="redirection_by_stream")]

    def __str__(self) -> str:
        return f"stream {self.stream_id} from {self.source} to {self.target}"

    @property
    def place(self) -> SourcePartition:
        """Return what is redirected."""
        return SourcePartition(self.stream_id, self.partition)
