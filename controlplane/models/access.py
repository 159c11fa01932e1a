"""Tokens by which scripts speak to the API."""

from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    """A bearer token of a user; only its sha256 is kept."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens"
    )
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["user", "name"]

    def __str__(self) -> str:
        return self.name
