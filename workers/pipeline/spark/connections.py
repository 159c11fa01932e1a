"""What a process has once: connections to Redis and to the log, a table cache, its executor."""

import gc
import os
import socket
import uuid
from collections.abc import Mapping
from functools import cache
from typing import Final
from urllib.parse import parse_qs, urlsplit

import redis
from pyspark import TaskContext

from controlplane.wire.log import open_log
from controlplane.wire.log.values import Log
from controlplane.wire.redis_clients import OutageProofRedis, connect_patiently
from controlplane.wire.results.database import ConnectedDatabase
from workers.pipeline.routing.table_cache import TableCache

# In a `local[n]` master the driver's own JVM runs the nodes.
_DRIVER: Final = "driver"


@cache
def client_of(redis_url: str) -> "redis.Redis":
    """Return this process's connection; commands wait for a Redis that is away for a short time."""
    return connect_patiently(redis_url, client=OutageProofRedis)


@cache
def log_of(log_url: str, redis_url: str, cluster: str) -> Log:
    """Return this process's connection to the log of a cluster, in Redis where `log_url` is empty.

    Its commands wait for a Redis that is away, too.
    """
    return open_log(log_url, cluster, redis_url, OutageProofRedis)


@cache
def tables_of(redis_url: str, cluster: str) -> TableCache:
    """Return this process's routing tables of a cluster."""
    return TableCache(client_of(redis_url), cluster)


@cache
def results_of(results_url: str) -> ConnectedDatabase:
    """Return this process's connection to the database of results."""
    return ConnectedDatabase(results_url)


@cache
def freeze_heap() -> None:
    """Exclude all objects that this process has loaded from garbage collection, once.

    Spark's Python workers collect garbage in full after every task: with pandas and pyarrow loaded
    that is 65 ms of processor time each, 18 times a batch. Call it at the end of a first task.
    """
    gc.collect()
    gc.freeze()


def task_failures() -> int:
    """Return how often the Spark task of this process has failed before; 0 outside of a task."""
    context = TaskContext.get()
    return 0 if context is None else context.attemptNumber()


def task_partition() -> int:
    """Return the partition of the Spark task of this process; 0 outside of a task."""
    context = TaskContext.get()
    # A process that runs no task may still have an empty context.
    partition = None if context is None else context.partitionId()
    return partition or 0


@cache
def process_id() -> str:
    """Return a random id of this process: one that plans a batch again has not failed."""
    return uuid.uuid4().hex


@cache
def executor() -> str:
    """Return host and executor of this process, as `host/3` or `host/driver`."""
    return f"{socket.gethostname()}/{executor_id(os.environ)}"


def executor_id(environment: Mapping[str, str]) -> str:
    """Return the executor id from a Python worker's environment.

    Kubernetes names it outright, YARN its container, a standalone cluster where its log is read.
    """
    logs = parse_qs(urlsplit(environment.get("SPARK_LOG_URL_STDERR", "")).query)
    result = (
        environment.get("SPARK_EXECUTOR_ID", ""),
        environment.get("CONTAINER_ID", ""),
        *logs.get("executorId", ()),
    )
    return next((item for item in result if item), _DRIVER)
