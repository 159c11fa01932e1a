"""The audit log: who changed what, when, from where and why."""

from typing import Any, NoReturn

from django.db import models

from controlplane.models.cluster import Cluster


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

    `request`: the id of the HTTP request; `seal`: that of the approved plan.
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

    objects = AppendOnly.as_manager()

    class Meta:
        ordering = ["-at", "-id"]
        verbose_name_plural = "audit entries"
        indexes = [models.Index(fields=["cluster", "-at"], name="audit_by_cluster")]

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
