"""Proposals: plans under review, sealed over their moves and their snapshot."""

from django.db import models

from controlplane.models.cluster import Cluster


class Proposal(models.Model):
    """A plan of one planner; requested_by and decided_by are user names.

    parameters holds what the algorithm was called with and nu, the balance slack. before and after
    are {replication_factor, traffic, loads: [queries per node], rates: [records/s per node],
    imbalance, max_load}, nodes in the order of snapshot["nodes"]. moves are {query, name, from, to,
    outcome, note}; from and to are node indices. lower_bound is one of the replication factor. seal
    is the sha256 over moves and snapshot, in hex.
    """

    class State(models.TextChoices):
        """Where the proposal is in its life."""

        COMPUTING = "computing"
        READY = "ready"
        APPLYING = "applying"
        DONE = "done"
        REJECTED = "rejected"
        STALE = "stale"
        FAILED = "failed"
        SUPERSEDED = "superseded"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="proposals")
    planner = models.CharField(max_length=30, default="placement")
    algorithm = models.CharField(max_length=30, default="mms")
    parameters = models.JSONField(default=dict, blank=True)
    seed = models.PositiveBigIntegerField(default=0)
    state = models.CharField(max_length=12, choices=State, default=State.COMPUTING)
    progress = models.FloatField(default=0.0)
    requested_by = models.CharField(max_length=150, blank=True)
    requested_at = models.DateTimeField()
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    snapshot = models.JSONField(default=dict, blank=True)
    snapshot_version = models.PositiveBigIntegerField(default=0)
    moves = models.JSONField(default=list, blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    lower_bound = models.FloatField(null=True, blank=True)
    seal = models.CharField(max_length=64, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-requested_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"],
                condition=models.Q(state="applying"),
                name="one_applying_per_cluster",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "state", "-requested_at"], name="proposal_by_state"),
        ]

    def __str__(self) -> str:
        return f"proposal {self.pk}"
