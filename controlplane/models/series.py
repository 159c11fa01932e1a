"""The measured series of clusters."""

from django.db import models

from controlplane.models.cluster import Cluster


class SeriesPeriod(models.Model):
    """The values of the series of a scope in one period, which starts at `t`.

    `seconds`: the length of the period; 1: a micro-batch, which ends at `t`. `measured_s`: the
    seconds of it that were measured, the weight of its values in means. `data`: the values, see
    `controlplane.telemetry.series`.
    """

    class Scope(models.IntegerChoices):
        """What the values belong to, as `wire.figures.Scope`."""

        CLUSTER = 0
        NODE = 1
        SPLIT = 2
        STREAM = 3
        QUERY = 4

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="series_periods")
    scope = models.PositiveSmallIntegerField(choices=Scope)
    seconds = models.PositiveIntegerField()
    t = models.DateTimeField()
    measured_s = models.FloatField()
    data = models.BinaryField()

    class Meta:
        ordering = ["cluster_id", "scope", "seconds", "t"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "scope", "seconds", "t"], name="series_period_once"
            ),
        ]
        indexes = [models.Index(fields=["scope", "seconds", "t"], name="series_period_by_age")]

    def __str__(self) -> str:
        return f"{self.cluster_id} {self.get_scope_display()} {self.seconds} s {self.t:%F %T}"
