"""Closing: windows that take no change any more, and taking them out of Redis."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.results.places import start_bytes, start_of
from controlplane.wire.results.scripts import FREEZE, REMOVE

# Windows that start up to then: all.
FOREVER: Final = 2**62
_SECTIONS: Final = "scb"
# Members per call: one call holds Redis for a few ms.
_CHUNK: Final = 1_000
# What is known of a query that has ended refuses its late rows for so long.
_CLOSED_S: Final = 7 * 86_400
BEHIND: Final = -1


def stored(client: "redis.Redis", cluster: str) -> list[int]:
    """Return the queries that have windows in Redis."""
    found = cast("set[bytes]", client.smembers(keys.stored_key(cluster)))
    return sorted(map(int, found))


def freeze(
    client: "redis.Redis", cluster: str, until: Mapping[int, int], final_at_ms: int | None
) -> dict[int, int]:
    """Let windows that start up to a time (ms, by query) take no change from now on.

    `final_at_ms`: since when they are final, None where they are not complete. Return by query 1
    where such windows are in Redis, 0 where none is, `BEHIND` where those that were frozen before
    have not left yet: then nothing happens.
    """
    script = client.register_script(FREEZE)
    pipe = client.pipeline(transaction=False)
    for query, start_ms in until.items():
        names = [keys.windows_key(cluster, query), keys.rows_key(cluster, query)]
        moment = "" if final_at_ms is None else final_at_ms
        script(keys=names, args=[start_ms, moment], client=pipe)
    outcomes = cast("list[int]", pipe.execute()) if until else []
    return dict(zip(until, outcomes, strict=True))


def frozen_until(client: "redis.Redis", cluster: str, query: int) -> int | None:
    """Return up to which start (ms) windows take no change any more, None before the first."""
    found = cast("bytes | None", client.hget(keys.rows_key(cluster, query), "final"))
    return None if found is None else int(found)


def remove(client: "redis.Redis", cluster: str, query: int, members: Sequence[bytes]) -> None:
    """Take members with their rows out of Redis; what is gone already stays so."""
    script = client.register_script(REMOVE)
    names = [keys.windows_key(cluster, query), keys.rows_key(cluster, query),
             keys.stored_key(cluster)]  # fmt: skip
    for at in range(0, max(1, len(members)), _CHUNK):
        script(keys=names, args=[query, _SECTIONS, *members[at : at + _CHUNK]])


def forget(client: "redis.Redis", cluster: str, queries: Sequence[int]) -> None:
    """Let what is known of queries that have ended go by itself after a week."""
    pipe = client.pipeline(transaction=False)
    for query in queries:
        pipe.expire(keys.rows_key(cluster, query), _CLOSED_S)
    pipe.execute()


def drop(client: "redis.Redis", cluster: str, query: int) -> None:
    """Delete all that Redis has of the windows of a query."""
    pipe = client.pipeline(transaction=True)
    pipe.delete(
        keys.windows_key(cluster, query), keys.rows_key(cluster, query),
        keys.feed_key(cluster, query),
    )  # fmt: skip
    pipe.srem(keys.stored_key(cluster), query)
    pipe.execute()


def extent(
    client: "redis.Redis", cluster: str, queries: Sequence[int]
) -> dict[int, tuple[int, int, int]]:
    """Return by query how many members it has in Redis, and the starts of the first and last."""
    pipe = client.pipeline(transaction=False)
    for query in queries:
        name = keys.windows_key(cluster, query)
        pipe.zcard(name)
        pipe.zrange(name, 0, 0)
        pipe.zrange(name, -1, -1)
    found: list[Any] = pipe.execute() if queries else []
    return {
        query: (count, start_of(first[0]), start_of(last[0]))
        for query, count, first, last in zip(
            queries, found[::3], found[1::3], found[2::3], strict=True
        )
        if count
    }


def members_until(
    client: "redis.Redis", cluster: str, query: int, start_ms: int, most: int = _CHUNK
) -> list[bytes]:
    """Return the oldest members of windows that start up to a time (ms)."""
    past = b"(" + start_bytes(start_ms) + b"\xff"
    name = keys.windows_key(cluster, query)
    return cast("list[bytes]", client.zrangebylex(name, "-", past, 0, most))


def start_at(client: "redis.Redis", cluster: str, query: int, rank: int) -> int | None:
    """Return the start (ms) of the member that has so many before it, None for no such member."""
    found = cast("list[bytes]", client.zrange(keys.windows_key(cluster, query), rank, rank))
    return start_of(found[0]) if found else None
