"""Final windows: freezing of windows and their removal from Redis."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.foreign.entries import readable, whole
from controlplane.wire.results.blocks import Ref
from controlplane.wire.results.places import start_bytes, start_of
from controlplane.wire.results.scripts import FREEZE, RELEASE, REMOVE

# A start after all windows.
FOREVER: Final = 2**62
_SECTIONS: Final = "scb"
# Members per call: one call holds Redis for a few ms.
_CHUNK: Final = 1_000
# The fields of an ended query reject its late rows for so long.
_CLOSED_S: Final = 7 * 86_400
BEHIND: Final = -1


def stored_queries(client: "redis.Redis", cluster: str) -> list[int]:
    """Return the queries that have windows in Redis."""
    result = cast("set[bytes]", client.smembers(keys.stored_key(cluster)))
    return sorted(readable(whole, result))


def freeze(
    client: "redis.Redis", cluster: str, until: Mapping[int, int], final_at_ms: int | None
) -> dict[int, int]:
    """Freeze the windows that start up to a time (ms, by query).

    `final_at_ms`: since when they are final, None if they are not complete. Return by query 1 if
    such windows are in Redis, 0 if none is, `BEHIND` without effect if windows that were frozen
    before have not left.
    """
    script = client.register_script(FREEZE)
    pipe = client.pipeline(transaction=False)
    for query, start_ms in until.items():
        names = keys.page_keys(cluster, query)
        moment = "" if final_at_ms is None else final_at_ms
        script(keys=names, args=[start_ms, moment], client=pipe)
    outcomes = cast("list[int]", pipe.execute()) if until else []
    return dict(zip(until, outcomes, strict=True))


def frozen_until(client: "redis.Redis", cluster: str, query: int) -> int | None:
    """Return up to which start (ms) windows are frozen, None if none is."""
    result = cast("bytes | None", client.hget(keys.rows_key(cluster, query), "final"))
    return None if result is None else int(result)


def remove_all(
    client: "redis.Redis", cluster: str, removed: Mapping[int, tuple[Sequence[bytes], bytes]]
) -> None:
    """Remove windows of queries from Redis; a repetition changes nothing.

    By query: members, which are removed with their rows, and the last place that has left; windows
    in blocks up to this place have left, too.
    """
    script = client.register_script(REMOVE)
    pipe = client.pipeline(transaction=False)
    for query, (members, last) in removed.items():
        for index in range(0, max(1, len(members)), _CHUNK):
            some = members[index : index + _CHUNK]
            script(keys=_names(cluster, query), args=[query, _SECTIONS, last, *some], client=pipe)
    if removed:
        pipe.execute()


def release(client: "redis.Redis", cluster: str, query: int, until_ms: int | None = None) -> int:
    """Release the blocks of a query whose windows start up to a time (ms), None for all.

    All windows until then have left. Return how many rows of windows there were in these blocks.
    """
    args: list[Any] = [query, keys.block_prefix(cluster), "" if until_ms is None else until_ms]
    released = client.register_script(RELEASE)(keys=_names(cluster, query), args=args)
    return cast("int", released)


def _names(cluster: str, query: int) -> list[str]:
    return [keys.windows_key(cluster, query), keys.rows_key(cluster, query),
            keys.stored_key(cluster), keys.blocks_key(cluster, query)]  # fmt: skip


def forget(client: "redis.Redis", cluster: str, queries: Sequence[int]) -> None:
    """Expire the stored fields of queries that have ended, after a week."""
    pipe = client.pipeline(transaction=False)
    for query in queries:
        pipe.expire(keys.rows_key(cluster, query), _CLOSED_S)
    pipe.execute()


def drop(client: "redis.Redis", cluster: str, query: int) -> None:
    """Delete all that Redis has of the windows of a query."""
    release(client, cluster, query)
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
    """Return by query how many rows of windows it has in Redis, and the first and last start."""
    pipe = client.pipeline(transaction=False)
    for query in queries:
        name = keys.windows_key(cluster, query)
        pipe.zcard(name)
        pipe.zrange(name, 0, 0)
        pipe.zrange(name, -1, -1)
        pipe.hgetall(keys.blocks_key(cluster, query))
    result: list[Any] = pipe.execute() if queries else []
    extents = {}
    for query, count, first, last, refs in zip(
        queries, result[::4], result[1::4], result[2::4], result[3::4], strict=True
    ):
        blocks = [Ref.from_bytes(name, data) for name, data in refs.items()]
        starts = [start_of(item) for item in (*first, *last)]
        starts += [ms for ref in blocks for ms in (ref.first_ms, ref.last_ms)]
        if starts:
            total = count + sum(ref.windows for ref in blocks)
            extents[query] = (total, min(starts), max(starts))
    return extents


def members_until(client: "redis.Redis", cluster: str, query: int, start_ms: int) -> list[bytes]:
    """Return the oldest members of windows that start up to a time (ms)."""
    stop = b"(" + start_bytes(start_ms) + b"\xff"
    name = keys.windows_key(cluster, query)
    return cast("list[bytes]", client.zrangebylex(name, "-", stop, 0, _CHUNK))


def start_behind(client: "redis.Redis", cluster: str, query: int, count: int) -> int | None:
    """Return the start (ms) up to which a query has about so many rows of windows.

    None if it has fewer. Blocks count as a whole.
    """
    refs = cast("dict[bytes, bytes]", client.hgetall(keys.blocks_key(cluster, query)))
    blocks = [Ref.from_bytes(name, data) for name, data in refs.items()]
    for ref in sorted(blocks, key=lambda item: item.last_ms):
        count -= ref.windows
        if count <= 0:
            return ref.last_ms
    result = cast(
        "list[bytes]", client.zrange(keys.windows_key(cluster, query), count - 1, count - 1)
    )
    return start_of(result[0]) if result else None
