"""One Redis connection and one table cache per process and cluster."""

from functools import cache

import redis

from workers.pipeline.tables import TableCache


@cache
def client_of(redis_url: str) -> "redis.Redis":
    """Return this process's connection; commands wait at most 20 s before the batch fails."""
    return redis.Redis.from_url(redis_url, socket_timeout=20, socket_connect_timeout=5)


@cache
def tables_of(redis_url: str, cluster: str) -> TableCache:
    """Return this process's routing tables of a cluster."""
    return TableCache(client_of(redis_url), cluster)
