"""Decisions of the watch loops, and the ledger of executed plans."""

from django.db import models

from controlplane.models.cluster import Cluster
from controlplane.models.proposal import Proposal


class Decision(models.Model):
    """A decision of a watch loop, with equal successors from `first_at` to `last_at`.

    `code`: the reason (watch.decision); `number`, `limit`: the deciding figure and its limit, in
    the `unit` share, ratio, ms, s, nodes, moves or records/s.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="decisions")
    loop = models.CharField(max_length=20)
    code = models.CharField(max_length=30)
    number = models.FloatField(null=True, blank=True)
    limit = models.FloatField(null=True, blank=True)
    unit = models.CharField(max_length=10, blank=True)
    text = models.CharField(max_length=300)
    proposal = models.ForeignKey(
        Proposal, on_delete=models.SET_NULL, null=True, blank=True, related_name="decisions"
    )
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    count = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["-last_at", "-id"]
        indexes = [models.Index(fields=["cluster", "loop", "-last_at"], name="decision_by_loop")]

    def __str__(self) -> str:
        return f"{self.loop}: {self.code}"


class LedgerEntry(models.Model):
    """Predicted and measured effects of one executed proposal.

    `approved`: predictions for the approved plan; `expected`: for the applied actions; `measured`:
    measurements. All have the same names (measures, bytes, pause_ms, latency_ms), without unknown
    figures. `without`: what the placement before the plan would have given over the same time, and
    `without_error`: the mean error of that model over the time (proposals.counterfactual).
    `assessment`: the effect on each measure (policies.assessment).
    `applied`, `skipped`: numbers of actions; `samples`: the number of samples after the end.
    """

    class Outcome(models.TextChoices):
        """The outcome of the execution."""

        DONE = "done"
        STOPPED = "stopped"
        STALE = "stale"
        ROLLED_BACK = "rolled back"

    proposal = models.OneToOneField(Proposal, on_delete=models.CASCADE, related_name="ledger")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="ledger")
    planner = models.CharField(max_length=30)
    algorithm = models.CharField(max_length=30)
    approved = models.JSONField(default=dict)
    expected = models.JSONField(default=dict)
    measured = models.JSONField(default=dict)
    without = models.JSONField(default=dict, blank=True)
    without_error = models.JSONField(default=dict, blank=True)
    assessment = models.JSONField(default=list, blank=True)
    outcome = models.CharField(max_length=12, choices=Outcome, default=Outcome.DONE)
    applied = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    samples = models.PositiveIntegerField(default=0)
    at = models.DateTimeField()

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "ledger entries"
        indexes = [models.Index(fields=["cluster", "planner", "-at"], name="ledger_by_planner")]

    def __str__(self) -> str:
        return f"ledger of proposal {self.proposal_id}"
