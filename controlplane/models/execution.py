"""Executions of approved proposals, step by step."""

from django.db import models
from django.db.models import Q

from controlplane.models.cluster import Cluster
from controlplane.models.proposal import Proposal
from controlplane.models.routing import RoutingVersion


class Execution(models.Model):
    """The execution of one proposal.

    `done`: the number of published actions; `undone`: the number of published actions of the
    rollback. `cap`, `cap_reason`: the limit of actions in the next step and its reason. One process
    holds the lease until `lease_until`. `not_before` delays the next step, for the reason in
    `waits`. `last_step`: stop after the present step. `rollback_cost`: the predicted cost of a
    rollback from here. `planned_stops`: the stops of the steps as they were predicted at the start,
    each of `planned_step_s` seconds.
    """

    class Direction(models.TextChoices):
        """Whether actions are applied or reverted."""

        FORWARD = "forward"
        BACK = "back"

    proposal = models.OneToOneField(Proposal, on_delete=models.CASCADE, related_name="execution")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="executions")
    direction = models.CharField(max_length=8, choices=Direction, default=Direction.FORWARD)
    done = models.PositiveIntegerField(default=0)
    undone = models.PositiveIntegerField(default=0)
    cap = models.PositiveIntegerField(default=1)
    cap_reason = models.CharField(max_length=200, blank=True)
    not_before = models.DateTimeField(null=True, blank=True)
    waits = models.CharField(max_length=200, blank=True)
    last_step = models.BooleanField(default=False)
    rollback_cost = models.JSONField(default=dict, blank=True)
    planned_stops = models.JSONField(default=list, blank=True)
    planned_step_s = models.FloatField(default=0.0)
    lease_owner = models.CharField(max_length=80, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-started_at", "-id"]
        indexes = [
            models.Index(
                fields=["cluster"], condition=Q(finished_at__isnull=True), name="execution_open"
            ),
        ]

    def __str__(self) -> str:
        return f"execution of proposal {self.proposal_id}"


class Step(models.Model):
    """A routing version of an execution: actions [first, stop) of its proposal or its rollback.

    `applied`: the number of applied actions. `skipped`: [place, code] of each action that could not
    be applied (topology.applicability). `inverses`: [place, actions] of each applied action: the
    actions that revert it. `tasks`: the number of moving tasks, `moved`: of those whose state has
    arrived. `effective_at`: the event time (ms) at which the last action takes effect, null for the
    version itself. `bytes`, `waited` (records), `pause_ms`: reported by the pipeline over `batches`
    micro-batches. `balance`: the imbalance before and after; `p95_ms`: the latency after it.
    """

    class State(models.TextChoices):
        """Whether the step is acknowledged."""

        PUBLISHED = "published"
        DONE = "done"

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    direction = models.CharField(max_length=8, choices=Execution.Direction)
    first = models.PositiveIntegerField()
    stop = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.PUBLISHED)
    version = models.OneToOneField(RoutingVersion, on_delete=models.PROTECT, null=True)
    cap = models.PositiveIntegerField(default=1)
    cap_reason = models.CharField(max_length=200, blank=True)
    applied = models.PositiveIntegerField(default=0)
    skipped = models.JSONField(default=list, blank=True)
    inverses = models.JSONField(default=list, blank=True)
    effective_at = models.BigIntegerField(null=True, blank=True)
    tasks = models.PositiveIntegerField(default=0)
    moved = models.PositiveIntegerField(default=0)
    batches = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)
    waited = models.PositiveBigIntegerField(default=0)
    pause_ms = models.FloatField(null=True, blank=True)
    balance_before = models.FloatField(null=True, blank=True)
    balance_after = models.FloatField(null=True, blank=True)
    p95_ms = models.FloatField(null=True, blank=True)
    published_at = models.DateTimeField()
    acknowledged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["execution", "number"]
        constraints = [
            models.UniqueConstraint(fields=["execution", "number"], name="step_number_once"),
            models.UniqueConstraint(
                fields=["execution"],
                condition=Q(state="published"),
                name="one_step_under_way",
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.number}"
