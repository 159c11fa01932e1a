"""Who follows a query's changes, and what the feed of a query says.

A feed is written only while somebody follows, so that queries cost nothing that nobody looks at.
Followers name a query for a while and do so again in time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.results.write import FEED_ENTRIES, TOO_MANY

# Whoever follows a query says so again within this time.
FOLLOWED_MS: Final = 60_000
# So many queries of a cluster are followed at a time.
MAX_FOLLOWED: Final = 100


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """What one node changed of a query in one batch: the members of the windows.

    None: too many to be named. Empty: windows have become final.
    """

    position: str
    batch: int
    members: Sequence[bytes] | None


def follow(client: "redis.Redis", cluster: str, query: int, now_ms: int) -> None:
    """Have the changes of a query written to its feed for a minute from now (ms)."""
    name = keys.followers_key(cluster)
    pipe = client.pipeline(transaction=True)
    pipe.zremrangebyscore(name, "-inf", now_ms)
    pipe.zadd(name, {str(query): now_ms + FOLLOWED_MS})
    pipe.zremrangebyrank(name, 0, -MAX_FOLLOWED - 1)
    pipe.execute()


def followed(client: "redis.Redis", cluster: str, now_ms: int) -> list[int]:
    """Return the queries that somebody follows."""
    name = keys.followers_key(cluster)
    return [int(one) for one in cast("list[bytes]", client.zrangebyscore(name, now_ms, "+inf"))]


def entry_of(position: bytes, fields: dict[bytes, bytes]) -> FeedEntry:
    """Return an entry as the feed has it."""
    data = fields.get(b"places", b"")
    members = None if data == TOO_MANY else _members(data)
    return FeedEntry(position.decode(), int(fields[b"batch"]), members)


def _members(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        past = at + 2 + int.from_bytes(data[at : at + 2], "big")
        found.append(data[at + 2 : past])
        at = past
    return found


def note_final(client: Any, cluster: str, query: int, batch: int) -> None:
    """Tell the followers of a query that windows of it have become final."""
    name = keys.feed_key(cluster, query)
    client.xadd(name, {"batch": batch}, maxlen=FEED_ENTRIES, approximate=True)
    client.expire(name, 600)
