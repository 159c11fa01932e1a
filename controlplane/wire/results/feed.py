"""The change feed of a query, and its followers.

A feed is written only while it has followers, so that other queries have no cost.
Followers name a query for a while and do so again in time. The entries of a feed are numbered; who
finds a number missing, because the feed was cut or nobody followed for a while, has missed changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.foreign.entries import readable, whole
from controlplane.wire.results.scripts import FOLLOW, NOTE
from controlplane.wire.results.write import FEED_ENTRIES, TOO_MANY

# Followers of a query renew their entry within this time.
FOLLOWED_MS: Final = 60_000
# Followed queries of a cluster: a feed takes up to 20 MB.
MAX_FOLLOWED: Final = 100
# Entries that are read together.
_ENTRIES: Final = 100


class TooManyFollowed(Exception):
    """So many other queries of the cluster are followed that this one cannot be."""


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """A node's changes of a query in one batch: the members of the windows.

    None: too many to be listed. Empty: windows have become final.
    """

    number: int
    batch: int
    members: Sequence[bytes] | None


def follow(client: "redis.Redis", cluster: str, query: int, now_ms: int) -> int:
    """Follow a query for a minute from now (ms): its changes are written to its feed.

    Return the number of its newest entry. Raises `TooManyFollowed`.
    """
    number = client.register_script(FOLLOW)(
        keys=[keys.followers_key(cluster), keys.rows_key(cluster, query)],
        args=[query, now_ms, now_ms + FOLLOWED_MS, MAX_FOLLOWED],
    )
    if cast("int", number) < 0:
        raise TooManyFollowed
    return cast("int", number)


def followed(client: "redis.Redis", cluster: str, now_ms: int) -> list[int]:
    """Return the followed queries."""
    name = keys.followers_key(cluster)
    return list(readable(whole, cast("list[bytes]", client.zrangebyscore(name, now_ms, "+inf"))))


def entries_after(client: "redis.Redis", cluster: str, query: int, number: int) -> list[FeedEntry]:
    """Return the next entries after a number, oldest first.

    An unreadable entry lists no members: the follower reads all windows.
    """
    name = keys.feed_key(cluster, query)
    result = cast("list[Any]", client.xrange(name, f"({number}-0", "+", count=_ENTRIES))
    return [
        next(
            readable(lambda item: entry_of(*item), [item]),
            FeedEntry(int(item[0].partition(b"-")[0]), 0, None),
        )
        for item in result
    ]


def entry_of(position: bytes, fields: dict[bytes, bytes]) -> FeedEntry:
    """Return an entry as the feed has it."""
    data = fields.get(b"places", b"")
    members = None if data == TOO_MANY else _members(data)
    return FeedEntry(int(position.partition(b"-")[0]), int(fields[b"batch"]), members)


def _members(data: bytes) -> list[bytes]:
    result, offset = [], 0
    while offset < len(data):
        stop = offset + 2 + int.from_bytes(data[offset : offset + 2], "big")
        result.append(data[offset + 2 : stop])
        offset = stop
    return result


def note_final(client: "redis.Redis", cluster: str, query: int, batch: int) -> None:
    """Append an entry to the feed of a query: windows have become final."""
    names = [keys.feed_key(cluster, query), keys.rows_key(cluster, query)]
    client.register_script(NOTE)(keys=names, args=[batch, FEED_ENTRIES])
