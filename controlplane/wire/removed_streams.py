"""What Redis has of a stream, deleted with the stream."""

from collections.abc import Sequence
from itertools import islice

import redis

from controlplane.wire import dead_letters, keys

_AT_ONCE = 1_000


def forget_streams(client: "redis.Redis", cluster: str, streams: Sequence[int]) -> None:
    """Delete records, counts, schemas and dead letters of removed streams; idempotent.

    The index of the log keeps its totals, so that the unread records of other streams are counted
    as before.
    """
    if not streams:
        return
    names = [str(stream) for stream in streams]
    pipe = client.pipeline(transaction=False)
    pipe.unlink(*(keys.log_key(cluster, stream) for stream in streams))
    for key in (keys.newest_key, keys.counts_key, keys.schemas_key, keys.watermarks_key):
        pipe.hdel(key(cluster), *names)
    reasons = (f"{name}:{reason}" for name in names for reason in dead_letters.Reason)
    pipe.hdel(keys.dead_counts_key(cluster), *reasons)
    pipe.execute()
    letters = dead_letters.every(client, cluster)
    ids = (letter.id for letter in letters if letter.stream in streams)
    while some := list(islice(ids, _AT_ONCE)):
        dead_letters.remove(client, cluster, some)
