"""Arrivals of streams over time, and their redirections to other split nodes."""

import zlib

import numpy as np
from django.db import models

from algorithms.vocabulary import Floats, Ints
from controlplane.models.cluster import Cluster, Stream
from controlplane.wire.figures import ARRIVALS_PERIOD_S

# Half the size of the raw arrays, at a third of the time of the default level.
_LEVEL = 1


class StreamArrivals(models.Model):
    """The records that arrived in a period, by stream.

    `seconds`: the length of the period that starts at `t`. `counted_until`: up to where it is
    counted. `data`: ids, arrivals and unread records at `counted_until`, compressed; longer periods
    have the most unread records of the shorter ones.
    """

    class Period(models.IntegerChoices):
        """The lengths of periods in seconds."""

        TEN_SECONDS = ARRIVALS_PERIOD_S
        FIVE_MINUTES = 300
        HOUR = 3600

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="arrivals")
    seconds = models.PositiveIntegerField(choices=Period)
    t = models.DateTimeField()
    counted_until = models.DateTimeField()
    data = models.BinaryField()

    class Meta:
        ordering = ["cluster", "seconds", "t"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "seconds", "t"], name="arrivals_once"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.seconds} s {self.t:%F %T}"

    @staticmethod
    def packed(streams: Ints, arrived: Floats, unread: Floats) -> bytes:
        """Return the data: int64[s], float64[s], float64[s]."""
        arrays = np.concatenate([streams.astype(np.float64), arrived, unread])
        return zlib.compress(arrays.astype("<f8").tobytes(), _LEVEL)

    def arrivals(self) -> tuple[Floats, Floats]:
        """Return the streams, ascending, and their arrivals, float64[s] each; read-only."""
        values = np.frombuffer(zlib.decompress(bytes(self.data)), "<f8").reshape(3, -1)
        return values[0], values[1]

    def columns(self) -> tuple[Ints, Floats, Floats]:
        """Return the streams, their arrivals and their unread records."""
        values = np.frombuffer(zlib.decompress(bytes(self.data)), "<f8").reshape(3, -1)
        return values[0].astype(np.int64), values[1].copy(), values[2].copy()


class StoredForecast(models.Model):
    """The forecast of all streams of a cluster, as it was computed last; one row per cluster.

    `starts_at`: the start of its first period, null before the first record; `seconds`: of one
    period; `capacity`: records/s of each split node, 0 if it is not known. `basis`: the settings
    that it depends on. `moves`: the redirections that were planned, as rows of stream and split
    node. `data`: ids and expected records/s of the streams, see admission.cluster_forecast.
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

    `version`: the first routing version with the new split node; `reason`: a sentence; `actor`: who
    decided.
    """

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="redirections")
    at = models.DateTimeField()
    source = models.PositiveSmallIntegerField()
    target = models.PositiveSmallIntegerField()
    version = models.PositiveBigIntegerField()
    reason = models.CharField(max_length=300, blank=True)
    actor = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [models.Index(fields=["stream", "-at"], name="redirection_by_stream")]

    def __str__(self) -> str:
        return f"stream {self.stream_id} from {self.source} to {self.target}"
