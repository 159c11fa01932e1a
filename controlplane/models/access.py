"""Grants of roles to users, API tokens, saved views, and stored responses by idempotency key."""

from django.conf import settings
from django.db import models

from controlplane.models.cluster import Cluster


class Grant(models.Model):
    """A role of a user on one cluster, or on all (cluster None)."""

    class Role(models.TextChoices):
        """The roles; each includes the previous ones."""

        VIEWER = "viewer"
        OPERATOR = "operator"
        APPROVER = "approver"
        ADMIN = "admin"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="grants"
    )
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, null=True, blank=True, related_name="grants"
    )
    role = models.CharField(max_length=10, choices=Role)
    granted_by = models.CharField(max_length=150, blank=True)
    granted_at = models.DateTimeField()

    class Meta:
        ordering = ["user", "cluster", "role"]
        constraints = [
            models.UniqueConstraint(fields=["user", "cluster"], name="grant_once"),
            models.UniqueConstraint(
                fields=["user"], condition=models.Q(cluster=None), name="grant_for_all_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role}"


class ApiToken(models.Model):
    """A bearer token of a user; only its sha256 is kept, and its last four characters as a hint.

    `role`: the highest role of requests with the token, blank for no limit; that of a producer
    appends to the streams of its cluster, and does nothing else. `cluster`: the only cluster of
    these requests, null for all.
    """

    PRODUCER = "producer"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=4, blank=True)
    role = models.CharField(
        max_length=10, choices=[(PRODUCER, PRODUCER), *Grant.Role.choices], blank=True
    )
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, null=True, blank=True, related_name="api_tokens"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["user", "name"]

    def __str__(self) -> str:
        return self.name


class KeptAnswer(models.Model):
    """The response of a request with an Idempotency-Key; status is None while it runs.

    `fingerprint`: the sha256 of method, path, token and body; another request with the same key is
    an error. `claimed_until`: when the claim of a killed process ends. `applied_by`: the id of the
    request whose change was committed, "" before that. `body` is compressed, to `size` bytes.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="kept_answers"
    )
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    claim = models.CharField(max_length=32)
    claimed_until = models.DateTimeField()
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    content_type = models.CharField(max_length=100, blank=True)
    applied_by = models.CharField(max_length=40, blank=True)
    body = models.BinaryField(default=b"")
    size = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["expires_at"]
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="answer_key_once")]

    def __str__(self) -> str:
        return self.key


class SavedView(models.Model):
    """A filter text and an order of a list under a name; a default one opens with the list.

    `list`: the name of a kind (controlplane.lists.kinds); it holds on every cluster.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views"
    )
    list = models.CharField(max_length=20)
    name = models.CharField(max_length=60)
    filter = models.CharField(max_length=500, blank=True)
    order = models.CharField(max_length=30, blank=True)
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["list", "name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "list", "name"], name="saved_view_name_once"),
            models.UniqueConstraint(
                fields=["user", "list"],
                condition=models.Q(is_default=True),
                name="saved_view_default_once",
            ),
        ]

    def __str__(self) -> str:
        return self.name
