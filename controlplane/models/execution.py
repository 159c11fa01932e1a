"""Executions: approved proposals being carried out, step by step."""

from django.db import models
from django.db.models import Q

from controlplane.models.cluster import Cluster
from controlplane.models.proposal import Proposal
from controlplane.models.routing import RoutingVersion


class Execution(models.Model):
    """The carrying out of one proposal.

    done is how many of the proposal's moves are carried out, undone how many of these have been
    moved back. cap is how many moves the next step may have, cap_reason why. Who advances it holds
    the lease until lease_until; after that another may. not_before delays the next step, told in
    waits. last_step: it stops once the step under way is done. undo is the price of going back
    from where it is: {moves, bytes, seconds}.
    """

    class Direction(models.TextChoices):
        """Where it goes."""

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
    undo = models.JSONField(default=dict, blank=True)
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
    """One routing version of an execution: moves [first, past) of its proposal, or back again.

    skipped are the places of moves that were left out, as their query had ended or was elsewhere.
    tasks is how many tasks it hands on, moved how many of these had come. bytes, waited (records)
    and pause_ms are what the pipeline reported in batches, the number of its batches since; balance
    is the imbalance measured before and after, p95_ms the latency after it.
    """

    class State(models.TextChoices):
        """How far it is."""

        PUBLISHED = "published"
        DONE = "done"

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    direction = models.CharField(max_length=8, choices=Execution.Direction)
    first = models.PositiveIntegerField()
    past = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.PUBLISHED)
    version = models.OneToOneField(RoutingVersion, on_delete=models.PROTECT, null=True)
    cap = models.PositiveIntegerField(default=1)
    cap_reason = models.CharField(max_length=200, blank=True)
    skipped = models.JSONField(default=list, blank=True)
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
