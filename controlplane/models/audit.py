"""The audit log: who changed what, when, from where and why."""

from typing import Any, NoReturn

from django.db import models

from controlplane.models.cluster import Cluster

# The action of a changed policy, whose changes are listed on its page.
POLICY_CHANGE = "policy.change"


class AppendOnly(models.QuerySet["AuditEntry"]):
    """Rows that cannot be updated or deleted."""

    def update(self, **kwargs: Any) -> NoReturn:
        """Refuse: the audit log is append-only."""
        raise TypeError("The audit log is append-only")

    def delete(self) -> NoReturn:
        """Refuse: the audit log is append-only."""
        raise TypeError("The audit log is append-only")


class AuditEntry(models.Model):
    """A change by a person or a script; `actor`: the user name as text.

    `request`: the id of the HTTP request; `seal`: that of the approved plan. `sequence`: the place
    in the hash chain, from 1, null until the entry is sealed; `hash`: the sha256 over the entry and
    the hash before it.
    """

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=150)
    address = models.GenericIPAddressField(null=True, blank=True)
    # Entries outlive a deleted cluster and keep its id; `object` has its slug.
    cluster = models.ForeignKey(
        Cluster, on_delete=models.DO_NOTHING, db_constraint=False, null=True, blank=True,
        related_name="audit_entries",
    )  # fmt: skip
    action = models.CharField(max_length=60)
    object = models.CharField(max_length=200)
    request = models.CharField(max_length=40, blank=True)
    seal = models.CharField(max_length=64, blank=True)
    reason = models.TextField(blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    sequence = models.BigIntegerField(null=True, blank=True, unique=True, editable=False)
    hash = models.CharField(max_length=64, blank=True, editable=False)

    objects = AppendOnly.as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["cluster", "-at"], name="audit_by_cluster"),
            models.Index(
                fields=["cluster", "-at"],
                name="audit_of_policies",
                condition=models.Q(action=POLICY_CHANGE),
            ),
            # Machine actions are folded from the index alone.
            models.Index(fields=["-at", "actor", "action", "cluster"], name="audit_by_time"),
            models.Index(fields=["id"], condition=models.Q(sequence=None), name="audit_unsealed"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.object}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert the row; refuse an update."""
        if not self._state.adding:
            raise TypeError("The audit log is append-only")
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: the audit log is append-only."""
        raise TypeError("The audit log is append-only")


class AuditChain(models.Model):
    """The hash chain over the audit log: one row with its two ends and its last verification.

    `sequence`, `hash`: those of the newest sealed entry; `start_sequence`, `start_hash`: those of
    the newest entry that was pruned, 0 and "" without one. `fault`: the code of the first fault
    that the last verification reported, "" for none, at `fault_sequence`, in entry `fault_entry`.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    sequence = models.BigIntegerField(default=0)
    hash = models.CharField(max_length=64, blank=True)
    start_sequence = models.BigIntegerField(default=0)
    start_hash = models.CharField(max_length=64, blank=True)
    verified_at = models.DateTimeField(null=True, blank=True)
    verified_sequence = models.BigIntegerField(default=0)
    fault = models.CharField(max_length=20, blank=True)
    fault_sequence = models.BigIntegerField(null=True, blank=True)
    fault_entry = models.BigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(id=1), name="audit_chain_of_one_row")
        ]

    def __str__(self) -> str:
        return f"{self.sequence} entries"


class RoutineActions(models.Model):
    """The number of equal actions by one user or token in a period; `actor`: a user name.

    `key`: the digest of what is equal (`controlplane.access.audit`).
    """

    key = models.CharField(max_length=64)
    actor = models.CharField(max_length=150)
    token = models.PositiveBigIntegerField(null=True)
    action = models.CharField(max_length=60)
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, null=True, related_name="routine_actions"
    )
    # The start of the period.
    period = models.DateTimeField()
    count = models.PositiveBigIntegerField(default=0)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    last_object = models.CharField(max_length=200, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        ordering = ["-period", "id"]
        verbose_name_plural = "routine actions"
        constraints = [
            models.UniqueConstraint(fields=["key", "period"], name="routine_actions_once"),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} ({self.count})"
