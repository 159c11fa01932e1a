"""Proposals: plans under review, sealed over their moves and their snapshot."""

from functools import cached_property

from django.db import models
from django.db.models import F, Q

from controlplane.models.cluster import Cluster
from controlplane.models.snapshot import Snapshot
from controlplane.planning.snapshot import EMPTY, ClusterSnapshot
from controlplane.proposals.states import ACTIVE, State

_STATES = [(state.value, state.name.replace("_", " ").title()) for state in State]


class Comparison(models.Model):
    """Several planners asked about one snapshot; its candidates are the proposals that name it."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="comparisons")
    snapshot_row = models.ForeignKey(Snapshot, on_delete=models.PROTECT, null=True, blank=True)
    requested_by = models.CharField(max_length=150)
    requested_at = models.DateTimeField()
    budget = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-requested_at", "-id"]

    def __str__(self) -> str:
        return f"comparison {self.pk}"


class Proposal(models.Model):
    """A plan of one planner; requested_by, approved_by and decided_by are user names.

    parameters holds what the algorithm was called with and nu, the balance slack. before and after
    are {replication_factor, traffic, loads: [queries per node], rates: [records/s per node],
    imbalance, max_load}, nodes in the order of the snapshot. moves are
    {query, name, from, to, bytes, outcome, note} in the order in which they are carried out, with
    first and past where only some tasks of a query move; from and to are node indices, bytes the
    state as last measured. path is the imbalance after each move. predicted says what carrying it
    out takes: {moves, bytes, steps, pause_ms, seconds}. undo is the compensating plan:
    {moves, bytes, seconds} of going back from the end. lower_bound is one of the replication
    factor. seal is the sha256 over moves and snapshot, in hex.

    four_eyes is the policy's word at the time of the request: who asked may not approve. drift
    says by what a stale one was out of date. base is what it was derived from: a proposal without
    some of its moves, or one that was asked for anew.
    """

    State = State
    ACTIVE = ACTIVE

    class Kind(models.TextChoices):
        """Which planner made it."""

        PLACEMENT = "placement"
        MIGRATION = "migration"
        ADMISSION = "admission"
        PARTITIONING = "partitioning"
        SHEDDING = "shedding"

    class Origin(models.TextChoices):
        """Who asked: a person or script, a watch loop, or another proposal."""

        PERSON = "person"
        WATCH = "watch"
        DERIVED = "derived"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="proposals")
    planner = models.CharField(max_length=30, choices=Kind, default=Kind.PLACEMENT)
    algorithm = models.CharField(max_length=30, default="mms")
    parameters = models.JSONField(default=dict, blank=True)
    seed = models.PositiveBigIntegerField(default=0)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.PERSON)
    base = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True)
    comparison = models.ForeignKey(
        Comparison, on_delete=models.CASCADE, null=True, blank=True, related_name="candidates"
    )
    state = models.CharField(max_length=12, choices=_STATES, default=State.COMPUTING)
    progress = models.FloatField(default=0.0)
    requested_by = models.CharField(max_length=150, blank=True)
    requested_at = models.DateTimeField()
    four_eyes = models.BooleanField(default=False)
    approved_by = models.CharField(max_length=150, blank=True)
    approved_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    snapshot_row = models.ForeignKey(
        Snapshot, on_delete=models.PROTECT, null=True, blank=True, related_name="proposals"
    )
    snapshot_version = models.PositiveBigIntegerField(default=0)
    moves = models.JSONField(default=list, blank=True)
    path = models.JSONField(default=list, blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    predicted = models.JSONField(default=dict, blank=True)
    undo = models.JSONField(default=dict, blank=True)
    lower_bound = models.FloatField(null=True, blank=True)
    seal = models.CharField(max_length=64, blank=True)
    drift = models.JSONField(default=dict, blank=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ["-requested_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster"],
                condition=Q(state__in=("executing", "paused", "rolling back")),
                name="one_execution_per_cluster",
            ),
            models.CheckConstraint(
                condition=Q(four_eyes=False)
                | Q(approved_by="")
                | ~Q(approved_by=F("requested_by")),
                name="approver_is_not_requester",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=("approved", "executing", "paused", "rolling back"))
                | (~Q(seal="") & ~Q(approved_by="")),
                name="what_runs_is_sealed_and_approved",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "state", "-requested_at"], name="proposal_by_state"),
            models.Index(fields=["cluster", "-requested_at", "-id"], name="proposal_by_age"),
        ]

    def __str__(self) -> str:
        return f"proposal {self.pk}"

    @cached_property
    def snapshot(self) -> ClusterSnapshot:
        """Return what it was computed from, empty before it is."""
        return self.snapshot_row.value() if self.snapshot_row is not None else EMPTY
