"""Stored responses by idempotency key."""

from django.conf import settings
from django.db import models


class KeptAnswer(models.Model):
    """The response of a request with an Idempotency-Key; status is None while it runs.

    `fingerprint`: the sha256 of method, path, token and body; another request with the same key is
    an error. `claimed_until`: when the key is free again after its process was killed, whose
    transaction was rolled back. `body` is compressed.
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
    body = models.BinaryField(default=b"")
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        ordering = ["expires_at"]
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="answer_key_once")]

    def __str__(self) -> str:
        return self.key
