"""The durable log of a cluster: Redis Streams, or a topic of Kafka.

Every append, to any number of streams, has one *position*, and positions only grow. So one
position is a consistent cut of the whole log: a reader that stops there has read exactly the
earlier appends of every stream.

Each entry also has the *watermark* of its stream before it (`values.Watermark`), which determines
the late records, so lateness does not depend on the reader.
"""

import redis

from controlplane.wire.log.address import KAFKA_SCHEME, check_url, kafka_address
from controlplane.wire.log.redis_log import RedisLog, connect
from controlplane.wire.log.values import Log


def schema_client(url: str) -> "redis.Redis | None":
    """Return a connection to the Redis with the published schemas; None for Kafka."""
    return None if url.startswith(f"{KAFKA_SCHEME}://") else connect(url)


def open_log(
    url: str, cluster: str, site: str = "", client: "type[redis.Redis]" = redis.Redis
) -> Log:
    """Return the log of `cluster` at `url` (redis://… or kafka://…), at `site` where that is empty.

    `site` is the URL of the site's Redis. The pipeline needs it to read a log in Kafka; producers
    do not. `client`: the class of connections to Redis. Raises `BadLogUrl`.
    """
    place = url or site
    if url or not site:
        check_url(url)
    if not place.startswith(f"{KAFKA_SCHEME}://"):
        return RedisLog(connect(place, client), cluster)
    # A site without Kafka should not load the client library.
    from controlplane.wire.log.kafka_log import KafkaLog  # noqa: PLC0415

    return KafkaLog(kafka_address(place, cluster), cluster, connect(site, client) if site else None)
