"""The durable log of a cluster: Redis Streams, or a topic of Kafka.

Every append, to any number of streams, has one *position*, and positions only grow. So one
position is a consistent cut of the whole log: a reader that stops there has read exactly the
earlier appends of every stream.

Each entry also has the newest earlier event time of its stream, its *watermark*, which determines
the late records, so lateness does not depend on the reader.
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
