"""The skew of the keys of queries over time."""

from django.db import models

from controlplane.models.query import Query


class KeySkew(models.Model):
    """The skew of the keys of a query in a period that starts at `t`.

    `seconds`: the length of the period. `top_share`, `top10_share`: shares of the most frequent key
    and of the ten most frequent keys. `imbalance`: the records/s over capacity of the most loaded
    task, minus the mean of all tasks. `pairs`: of a key and a task among the keys with known
    tasks, at most 32 per sample. `grouping`: the name of the key grouping, "" for a query without.
    """

    class Period(models.IntegerChoices):
        """The lengths of periods in seconds."""

        TEN_SECONDS = 10
        FIVE_MINUTES = 300
        HOUR = 3600

    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="skews")
    seconds = models.PositiveIntegerField(choices=Period)
    t = models.DateTimeField()
    top_share = models.FloatField()
    top10_share = models.FloatField()
    imbalance = models.FloatField()
    pairs = models.PositiveIntegerField()
    records_per_s = models.FloatField()
    grouping = models.CharField(max_length=40, blank=True)

    class Meta:
        ordering = ["query", "seconds", "t"]
        constraints = [
            models.UniqueConstraint(fields=["query", "seconds", "t"], name="key_skew_once"),
        ]
        indexes = [models.Index(fields=["seconds", "t"], name="key_skew_by_time")]

    def __str__(self) -> str:
        return f"{self.query_id} {self.seconds} s {self.t:%F %T}"
