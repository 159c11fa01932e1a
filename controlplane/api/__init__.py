"""The REST API under /api/v1: sessions with CSRF for browsers, bearer tokens for scripts."""

from controlplane.api.application import api
