"""Armed ladders of drop rules, and the times in which a ladder dropped records."""

from django.db import models

from controlplane.models.cluster import Cluster, Stream
from controlplane.models.snapshot import Snapshot
from controlplane.wire.routing.ladder import Ladder


class ArmedLadder(models.Model):
    """The ladder of a cluster (controlplane.wire.routing.ladder.Ladder) as JSON.

    The row exists as long as the routing table has a ladder. `snapshot`: that from which the ladder
    was computed, null if it is not known. `set_by`: a user name as text.
    `active_until`: the end of the activation of a rung, null without one; `active_by`,
    `active_reason`: who activated it, and why.
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
    active_until = models.DateTimeField(null=True, blank=True)
    active_by = models.CharField(max_length=150, blank=True)
    active_reason = models.TextField(blank=True)

    class Meta:
        ordering = ["cluster"]

    def __str__(self) -> str:
        return f"shedding plan of {self.cluster_id}"

    @property
    def value(self) -> Ladder:
        """Return the ladder as the wire's value."""
        return Ladder.from_json(self.ladder)


class DisarmedLadder(models.Model):
    """A ladder that a person disarmed for a bounded time: Weir arms it again at `arm_at`.

    `ladder`, `snapshot`: as in `ArmedLadder`. The row is deleted when any ladder is armed.
    """

    cluster = models.OneToOneField(
        Cluster, on_delete=models.CASCADE, related_name="disarmed_ladder"
    )
    ladder = models.JSONField()
    snapshot = models.ForeignKey(
        Snapshot, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    arm_at = models.DateTimeField()
    disarmed_by = models.CharField(max_length=150, blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        ordering = ["cluster"]

    def __str__(self) -> str:
        return f"disabled shedding plan of {self.cluster_id}"

    @property
    def value(self) -> Ladder:
        """Return the ladder as the wire's value."""
        return Ladder.from_json(self.ladder)


class SheddingInterval(models.Model):
    """A time of dropped records, without a change of the rung after its first seconds.

    `rung`: the highest position on the ladder, rounded up, from 1; `position`: the largest one.
    `read`: records of all streams, `dropped`: of those, each once; `by_edge`: dropped records as
    rows of (stream, query, records), query 0 for the input edge. `by_stream`: records read as rows
    of (stream, records), of the streams with the most. `p95_ms`:
    the mean of the p95 latencies (ms) of its micro-batches, by their results, `timed` in all.
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
    by_stream = models.JSONField(default=list)
    p95_ms = models.FloatField(default=0.0)
    timed = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ["cluster", "-started_at", "-id"]
        indexes = [
            models.Index(fields=["cluster", "-ended_at"], name="shedding_by_end"),
            models.Index(fields=["ended_at"], name="shedding_by_age"),
        ]

    def __str__(self) -> str:
        return f"drop level {self.rung} of {self.cluster_id} at {self.started_at:%F %T}"


class EdgePeriod(models.Model):
    """The records that an edge dropped in a period of event time.

    `query`, `window_ms`, `slide_ms`, `start_s` (s since the epoch), `seconds`: as in
    controlplane.wire.drop_counts.DropCount. `counted_at`: when the row last changed.
    """

    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="edge_periods")
    query = models.BigIntegerField()
    window_ms = models.PositiveBigIntegerField(default=0)
    slide_ms = models.PositiveBigIntegerField(default=0)
    start_s = models.BigIntegerField()
    seconds = models.PositiveIntegerField()
    dropped = models.PositiveBigIntegerField(default=0)
    counted_at = models.DateTimeField()

    class Meta:
        ordering = ["stream", "query", "start_s", "seconds", "window_ms", "slide_ms"]
        constraints = [
            models.UniqueConstraint(
                fields=["stream", "query", "start_s", "seconds", "window_ms", "slide_ms"],
                name="edge_period_once",
            ),
        ]
        indexes = [
            models.Index(fields=["counted_at"], name="edge_period_by_age"),
            models.Index(
                fields=["stream", "start_s"],
                condition=models.Q(dropped__gt=0),
                name="edge_period_drops",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stream_id}>{self.query} {self.start_s} s"
