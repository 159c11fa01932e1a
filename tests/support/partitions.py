"""Streams with sources of several partitions, as their pipeline reports them."""

import json
from collections.abc import Mapping
from typing import Any

from controlplane.connections import redis_client
from controlplane.models import Stream
from controlplane.wire import keys


def with_partitions(stream: Stream, recent: Mapping[int, float], **changed: Any) -> Stream:
    """Let the stream be a topic; `recent`: by partition the records that have arrived lately."""
    stream.source = {"servers": "127.0.0.1:9092", "topic": "orders"}
    Stream.objects.filter(pk=stream.pk).update(source=stream.source)
    rows = [
        {"topic": "", "partition": number, "offset": 4, "first": 0, "end": 4, "unread": 0,
         "seconds": 0.0, "state": "read", "lost": 0, "line": "", "number": number, "recent": count}
        for number, count in recent.items()
    ]  # fmt: skip
    row = {"clock_ms": 1_700_000_000_000, "error": "", "partitions": rows} | changed
    redis_client().hset(keys.sources_key(stream.cluster.slug), str(stream.pk), json.dumps(row))
    return stream
