"""Armed ladders of drop rules, and the times in which a ladder dropped records."""

from django.db import models

from controlplane.models.cluster import Cluster
from controlplane.models.snapshot import Snapshot
from controlplane.wire.routing.ladder import Ladder


class ArmedLadder(models.Model):
    """The ladder of a cluster (controlplane.wire.routing.ladder.Ladder) as JSON.

    The row exists as long as the routing table has a ladder. `snapshot`: that from which the ladder
    was computed, null if it is not known. `set_by`: a user name as text.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="armed_ladder")
    ladder = models.JSONField()
    snapshot = models.ForeignKey(
        Snapshot, on_delete=models.SET_NULL, null=True, blank=True, related_name="ladders"
    )
    since_version = models.PositiveBigIntegerField()
    set_by = models.CharField(max_length=150, blank=True)
    set_at = models.DateTimeField()
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["cluster"]

    def __str__(self) -> str:
        return f"ladder of {self.cluster_id}"

    @property
    def value(self) -> Ladder:
        """Return the ladder as the wire's value."""
        return Ladder.from_json(self.ladder)


class SheddingInterval(models.Model):
    """A time without a change of the rung, in which a ladder dropped records.

    `rung`: the position on the ladder, rounded up, from 1; `position`: the largest one. `read`:
    records of all streams, `dropped`: records of all edges, `by_edge`: dropped records as rows of
    (stream, query, records), query 0 for the input edge.
    """

    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="shedding_intervals"
    )
    rung = models.PositiveSmallIntegerField()
    position = models.FloatField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    read = models.PositiveBigIntegerField(default=0)
    dropped = models.PositiveBigIntegerField(default=0)
    by_edge = models.JSONField(default=list)

    class Meta:
        ordering = ["cluster", "-started_at", "-id"]
        indexes = [
            models.Index(fields=["cluster", "-ended_at"], name="shedding_by_end"),
            models.Index(fields=["ended_at"], name="shedding_by_age"),
        ]

    def __str__(self) -> str:
        return f"rung {self.rung} of {self.cluster_id} at {self.started_at:%F %T}"
