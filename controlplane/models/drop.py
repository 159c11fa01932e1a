"""Drop rules of the data plane."""

from django.db import models

from controlplane.models.cluster import Cluster
from controlplane.models.query import Query
from controlplane.models.stream import Stream
from controlplane.wire.routing.drop_rules import INPUT, DropRule, Edge


class Drop(models.Model):
    """A drop rule on the input of a stream, or on its edge to a query.

    `rule`: the wire's value (controlplane.wire.routing.drop_rules.DropRule) as JSON. The row exists
    as long as the routing table has the rule. `dropped` counts records since the row was created,
    `per_s` is their present rate. `settles`: the step (since, ms) before which steps are deleted
    when the pipeline has processed the log up to a position; null if no step can be deleted.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="drops")
    stream = models.ForeignKey(Stream, on_delete=models.CASCADE, related_name="drops")
    query = models.ForeignKey(
        Query, on_delete=models.CASCADE, null=True, blank=True, related_name="drops"
    )
    rule = models.JSONField()
    since_version = models.PositiveBigIntegerField()
    set_by = models.CharField(max_length=150, blank=True)
    set_at = models.DateTimeField()
    reason = models.TextField(blank=True)
    dropped = models.PositiveBigIntegerField(default=0)
    per_s = models.FloatField(default=0.0)
    settles = models.JSONField(null=True, blank=True)

    class Meta:
        ordering = ["stream", "query"]
        constraints = [
            models.UniqueConstraint(
                fields=["stream", "query"],
                condition=models.Q(query__isnull=False),
                name="drop_split_edge_once",
            ),
            models.UniqueConstraint(
                fields=["stream"],
                condition=models.Q(query__isnull=True),
                name="drop_input_edge_once",
            ),
        ]

    def __str__(self) -> str:
        return f"drop of {self.stream_id}>{self.query_id or INPUT}"

    @property
    def edge(self) -> Edge:
        """Return the edge as `Edge`."""
        return self.stream_id, self.query_id or INPUT

    @property
    def value(self) -> DropRule:
        """Return the rule as the wire's value."""
        return DropRule.from_json(self.rule)
