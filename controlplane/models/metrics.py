"""Samples of what the data plane measured."""

from django.db import models

from controlplane.models.cluster import Cluster


class MetricSample(models.Model):
    """One sample (resolution 1: a micro-batch) or roll-up (10 s, 60 s); kept 1 h, 1 d, 30 d.

    `values`: a sample of controlplane.telemetry.samples; `t`: of a roll-up the start of its bucket.
    """

    class Resolution(models.IntegerChoices):
        """The number of seconds of a row."""

        RAW = 1
        TEN_SECONDS = 10
        MINUTE = 60

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="samples")
    resolution = models.PositiveSmallIntegerField(choices=Resolution)
    t = models.DateTimeField()
    values = models.JSONField()

    class Meta:
        ordering = ["cluster", "resolution", "t"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "resolution", "t"], name="sample_once"),
        ]
        indexes = [models.Index(fields=["resolution", "t"], name="sample_by_age")]

    def __str__(self) -> str:
        return f"{self.t:%H:%M:%S} at {self.resolution} s"
