"""One Redis client per process for the wire's keys; connections come from its pool."""

from functools import lru_cache

import redis
from django.conf import settings

from controlplane.wire.redis_clients import connect


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    return connect(url)


def redis_client() -> redis.Redis:
    """Return the client; keys and values are bytes."""
    return _client(settings.REDIS_URL)
