"""Deletion of what Redis has of a stream."""

from collections.abc import Sequence

import redis

from controlplane.wire import dead_letters, keys


def forget_streams(client: "redis.Redis", cluster: str, streams: Sequence[int]) -> None:
    """Delete records, counts, schemas and dead letters of removed streams; idempotent.

    The index of the log keeps its totals: the unread records of others are counted as before.
    """
    if not streams:
        return
    pipe = client.pipeline(transaction=False)
    pipe.unlink(*(keys.log_key(cluster, stream) for stream in streams))
    for key in (keys.newest_key, keys.counts_key, keys.schemas_key, keys.watermarks_key):
        pipe.hdel(key(cluster), *map(str, streams))
    reasons = [f"{stream}:{reason}" for stream in streams for reason in dead_letters.Reason]
    pipe.hdel(keys.dead_counts_key(cluster), *reasons)
    pipe.execute()
    letters = dead_letters.every(client, cluster)
    for letter in [letter.id for letter in letters if letter.stream in streams]:
        dead_letters.remove(client, cluster, [letter])
