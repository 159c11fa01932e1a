"""Streams: append-only sequences of records in the log."""

from django.db import models

from controlplane.models.cluster import Cluster


class Stream(models.Model):
    """A source of the placement paper; its pk is the stream id on the wire; rates in records/s.

    `schema`: a `wire.schema.StreamSchema` as JSON. `retired`: the last types of removed columns by
    name, as records of the log may still have them.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="streams")
    name = models.CharField(max_length=100)
    title = models.CharField(max_length=200, blank=True)
    schema = models.JSONField(default=dict, blank=True)
    retired = models.JSONField(default=dict, blank=True)
    declared_rate = models.FloatField(null=True, blank=True)
    rate = models.FloatField(null=True, blank=True)
    split = models.PositiveSmallIntegerField(default=0)
    meta = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="stream_name_once"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def weight(self) -> float:
        """Return w(s) of the placement paper: the measured rate, else the declared one, else 1."""
        return self.rate or self.declared_rate or 1.0
