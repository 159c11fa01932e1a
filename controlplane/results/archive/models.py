"""Archived windows, and how many there are of each query."""

from django.db import models


class ArchivedWindow(models.Model):
    """One window of one key of a query, finished.

    place is start and key as bytes, in whose order windows are read
    (controlplane.wire.results.places); key_hash finds those of one key. key_json and values_json
    are arrays in the order of the query's key and aggregates (controlplane.results.archive.values).
    final_at_ms is when the window became final, null if it did not: its query ended before, or it
    was open for too long.
    """

    query_id = models.BigIntegerField()
    place = models.BinaryField()
    start_ms = models.BigIntegerField()
    key_hash = models.BigIntegerField()
    key_json = models.TextField()
    values_json = models.TextField()
    batch = models.BigIntegerField()
    final_at_ms = models.BigIntegerField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["query_id", "place"], name="archived_window_once"),
        ]
        indexes = [
            models.Index(fields=["query_id", "key_hash", "start_ms"], name="archived_by_key"),
        ]

    def __str__(self) -> str:
        return f"window {self.start_ms} of query {self.query_id}"


class ArchivedQuery(models.Model):
    """How many windows of a query are archived, and when the newest starts (ms).

    There is no window before pruned_ms; null before the first search. cluster_id is the cluster's,
    also after its deletion.
    """

    query_id = models.BigIntegerField(primary_key=True)
    cluster_id = models.BigIntegerField()
    windows = models.BigIntegerField(default=0)
    newest_ms = models.BigIntegerField()
    pruned_ms = models.BigIntegerField(null=True)

    class Meta:
        verbose_name_plural = "archived queries"

    def __str__(self) -> str:
        return f"{self.windows} windows of query {self.query_id}"
