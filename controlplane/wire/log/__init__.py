"""The durable log of a cluster: Redis Streams, or a topic of Kafka.

Every append, to any number of streams, has one *position*, and positions only grow. So one
position cuts the whole log consistently: a reader that stops there has read, of every stream,
exactly the earlier appends.

Each entry also has the newest earlier event time of its stream, its *mark*. The mark decides which
records are late, so lateness does not depend on the reader.
"""

from controlplane.wire.log.address import check_url, log_identity, without_password
from controlplane.wire.log.factory import open_log, schema_client
from controlplane.wire.log.protocol import Log
from controlplane.wire.log.redis_log import RedisLog
from controlplane.wire.log.values import (
    DEFAULT_BYTES,
    DEFAULT_LIMIT,
    DEFAULT_LIMITS,
    START,
    WINDOW,
    Block,
    Entry,
    IdempotencyToken,
    Limits,
    LogBacklog,
    LogHead,
    LogPosition,
)

__all__ = [
    "DEFAULT_BYTES",
    "DEFAULT_LIMIT",
    "DEFAULT_LIMITS",
    "START",
    "WINDOW",
    "Block",
    "Entry",
    "IdempotencyToken",
    "Limits",
    "Log",
    "LogBacklog",
    "LogHead",
    "LogPosition",
    "RedisLog",
    "check_url",
    "log_identity",
    "open_log",
    "schema_client",
    "without_password",
]
