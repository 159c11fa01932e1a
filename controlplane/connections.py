"""One Redis client per process for the wire's keys; connections come from its pool."""

from functools import lru_cache

import redis
from django.conf import settings


@lru_cache(maxsize=4)
def _client(url: str) -> redis.Redis:
    # Five seconds: a page reports a lost Redis before its reader leaves.
    return redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=5)


def redis_client() -> redis.Redis:
    """Return the client; keys and values are bytes."""
    return _client(settings.REDIS_URL)
