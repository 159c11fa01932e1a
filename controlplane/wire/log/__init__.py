"""The durable log of a cluster: Redis Streams, or a topic of Kafka.

Every append, whatever number of streams it touches, stands at one *position*, and positions only
grow. So one position cuts the whole log consistently: a reader that stops at it has, of every
stream, exactly what was appended before.

Each entry also says the newest event time of its stream before it, its *mark*. What is late
follows from the mark, so it is part of the log and does not depend on who reads it when.
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
    StreamBacklog,
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
    "StreamBacklog",
    "check_url",
    "log_identity",
    "open_log",
    "schema_client",
    "without_password",
]
