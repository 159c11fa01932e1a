"""Proposals: plans under review, sealed over their actions and their snapshot."""

from functools import cached_property

from django.db import models
from django.db.models import F, Q

from controlplane.models.cluster import Cluster
from controlplane.models.snapshot import Snapshot
from controlplane.plans.plan import Plan
from controlplane.plans.proposal_states import ACTIVE, State
from controlplane.plans.snapshot import EMPTY, ClusterSnapshot

_STATES = [(state.value, state.name.replace("_", " ").title()) for state in State]


class Comparison(models.Model):
    """Plans of several planners for one snapshot; its candidates are proposals."""

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
    """A plan of a planner; `requested_by`, `approved_by` and `decided_by` are user names.

    `parameters`: the arguments of the planner. `before`, `after`: measures by name
    (planning.measures). `actions`: rows of `plans.plan.PlannedAction` in the order of execution;
    `imbalance_after`: the imbalance after each. `predicted`: the cost of the execution and the
    measures after it; `rollback_cost`: the cost of a complete rollback. `bounds`: lower bounds by
    measure. `seal`: the sha256 over actions and snapshot, in hex. `aims`: the measures of which the
    plan must improve one, none for those of its planner. `judgement`: why the plan is not better
    than the cluster as it was (policies.gate), {} if it is.

    `four_eyes`: True if the policy at the time of the request forbids the requester to approve.
    `drift`: the drift when the proposal became stale. `drifting_since`: since when the cluster
    differs more from the snapshot than the policy tolerates, last observed at `drift_seen_at`.
    `review`: the present effect of the applicable actions while the proposal waits; `obstacles`:
    [place, code] of the others. `base`: the proposal that this one was derived from, or replaces.
    `summary`: figures about the plan as a whole (planning.plan_summary). `unexplained`: the verb of
    the last emergency operation that still has no reason, "" for none.

    `estimate`: the estimated need of the computation at the request. `attempts` counts the claims
    of workers: a worker writes only while the number is that of its claim. `slot`: the computing
    slot that the present claim occupies; `beat_at`: the last heartbeat of its worker. `error_code`:
    a stable name of a failure. `traceparent`: the trace of the request, "" if it is not traced.
    """

    State = State
    ACTIVE = ACTIVE
    # Columns that grow with the plan.
    HEAVY = (
        "actions", "imbalance_after", "before", "after", "drift", "summary", "obstacles",
    )  # fmt: skip

    class Origin(models.TextChoices):
        """The origin of the request: a person or script, a watch loop, or another proposal."""

        PERSON = "person"
        WATCH = "watch"
        DERIVED = "derived"

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="proposals")
    planner = models.CharField(max_length=30)
    algorithm = models.CharField(max_length=30, default="mms")
    parameters = models.JSONField(default=dict, blank=True)
    seed = models.PositiveBigIntegerField(default=0)
    origin = models.CharField(max_length=10, choices=Origin, default=Origin.PERSON)
    base = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True)
    comparison = models.ForeignKey(
        Comparison, on_delete=models.CASCADE, null=True, blank=True, related_name="candidates"
    )
    state = models.CharField(max_length=20, choices=_STATES, default=State.COMPUTING)
    progress = models.FloatField(default=0.0)
    requested_by = models.CharField(max_length=150, blank=True)
    requested_at = models.DateTimeField()
    four_eyes = models.BooleanField(default=False)
    traceparent = models.CharField(max_length=55, blank=True)
    approved_by = models.CharField(max_length=150, blank=True)
    approved_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    snapshot_row = models.ForeignKey(
        Snapshot, on_delete=models.PROTECT, null=True, blank=True, related_name="proposals"
    )
    snapshot_version = models.PositiveBigIntegerField(default=0)
    actions = models.JSONField(default=list, blank=True)
    imbalance_after = models.JSONField(default=list, blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    predicted = models.JSONField(default=dict, blank=True)
    rollback_cost = models.JSONField(default=dict, blank=True)
    bounds = models.JSONField(default=dict, blank=True)
    aims = models.JSONField(default=list, blank=True)
    judgement = models.JSONField(default=dict, blank=True)
    seal = models.CharField(max_length=64, blank=True)
    drift = models.JSONField(default=dict, blank=True)
    drifting_since = models.DateTimeField(null=True, blank=True)
    drift_seen_at = models.DateTimeField(null=True, blank=True)
    review = models.JSONField(default=dict, blank=True)
    obstacles = models.JSONField(default=list, blank=True)
    summary = models.JSONField(default=dict, blank=True)
    unexplained = models.CharField(max_length=20, blank=True)
    error = models.TextField(blank=True)
    error_code = models.CharField(max_length=30, blank=True)
    estimate = models.JSONField(default=dict, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    beat_at = models.DateTimeField(null=True, blank=True)
    slot = models.PositiveSmallIntegerField(null=True, blank=True)

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
            models.UniqueConstraint(
                fields=["slot"],
                condition=Q(state="computing", slot__isnull=False),
                name="one_computation_per_slot",
            ),
        ]
        indexes = [
            models.Index(fields=["cluster", "state", "-requested_at"], name="proposal_by_state"),
            models.Index(fields=["cluster", "-requested_at", "-id"], name="proposal_by_age"),
        ]

    def __str__(self) -> str:
        return f"proposal {self.pk}"

    @classmethod
    def awaiting_approval(cls) -> "models.QuerySet[Proposal]":
        """Return the ready proposals that people decide on, alternatives of comparisons too."""
        return cls.objects.filter(state=cls.State.READY)

    @classmethod
    def light(cls) -> list[str]:
        """Return the names of the columns that do not grow with the plan."""
        return [field.name for field in cls._meta.concrete_fields if field.name not in cls.HEAVY]

    @property
    def plan(self) -> Plan:
        """Return the actions in the order of execution."""
        return Plan(self.actions)

    @cached_property
    def snapshot(self) -> ClusterSnapshot:
        """Return the snapshot of the plan, an empty one before the computation."""
        return self.snapshot_row.value() if self.snapshot_row is not None else EMPTY


class ProposalComment(models.Model):
    """A comment on a proposal; `author` is a user name."""

    MAX_LENGTH = 2000

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="comments")
    author = models.CharField(max_length=150)
    at = models.DateTimeField()
    text = models.CharField(max_length=MAX_LENGTH)

    class Meta:
        ordering = ["proposal", "at", "id"]

    def __str__(self) -> str:
        return f"comment {self.pk} on proposal {self.proposal_id}"
