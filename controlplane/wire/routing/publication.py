"""Publishing routing versions to a cluster, and reading them back.

A version is published once, in order, and never changes. The Lua scripts make "write the delta,
then move the pointer" one step, so that a publisher killed half-way leaves nothing behind.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import redis

from controlplane.wire import keys
from controlplane.wire.errors import RoutingGap, RoutingMissing, RoutingTaken
from controlplane.wire.foreign.entries import EntryLocation, decoded, readable, values_of, whole
from controlplane.wire.records.removed_streams import forget_streams
from controlplane.wire.routing.cluster_actions import RemoveStream, SetSchema
from controlplane.wire.routing.table import RoutingDelta, RoutingTable
from controlplane.wire.schema import StreamSchema

# Readers start from a snapshot; with one in 256 versions they replay at most 255 small deltas.
SNAPSHOT_EVERY: Final = 256
# How many versions stay readable behind the one the pipeline has committed, for readers that
# follow at their own pace; what the pipeline may still replay is never trimmed.
KEPT_VERSIONS: Final = 512

_PUBLISH: Final = """
local latest = redis.call('GET', KEYS[1])
local version = tonumber(ARGV[1])
if latest and tonumber(latest) >= version then
  local known = redis.call('GET', KEYS[2])
  if known and known ~= ARGV[2] then return {'other', latest} end
  return {'old', latest}
end
if not latest and version ~= 1 then return {'gap', ''} end
if latest and tonumber(latest) ~= version - 1 then return {'gap', latest} end
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('SET', KEYS[1], version)
return {'ok', version}
"""

_PUBLISH_SNAPSHOT: Final = """
local latest = redis.call('GET', KEYS[1])
local version = tonumber(ARGV[1])
redis.call('SET', KEYS[2], ARGV[2])
redis.call('ZADD', KEYS[3], version, version)
if not latest or tonumber(latest) <= version then redis.call('DEL', KEYS[4]) end
for i = 3, #ARGV, 2 do redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 1]) end
if not latest or tonumber(latest) < version then redis.call('SET', KEYS[1], version) end
return version
"""


def publish(client: "redis.Redis", cluster: str, delta: RoutingDelta) -> None:
    """Publish one delta; publishing it again changes nothing.

    Raises `RoutingGap` if the newest published version is not the one before, `RoutingTaken`
    where this version was published with other contents.
    """
    # First: the version is published again if this process ends in between.
    forget_streams(
        client, cluster, [op.stream for op in delta.actions if isinstance(op, RemoveStream)]
    )
    outcome, latest = cast(
        "tuple[bytes, bytes]",
        client.eval(
            _PUBLISH,
            3,
            keys.route_latest_key(cluster),
            keys.route_delta_key(cluster, delta.version),
            keys.schemas_key(cluster),
            delta.version,
            delta.to_json(),
            *_texts({op.stream: op.schema for op in delta.actions if isinstance(op, SetSchema)}),
        ),
    )
    if outcome == b"other":
        raise RoutingTaken(cluster, delta.version)
    if outcome == b"gap":
        raise RoutingGap(int(latest) if latest else None, delta.version)
    if outcome == b"ok" and delta.version % SNAPSHOT_EVERY == 0:
        publish_snapshot(client, cluster, read_table(client, cluster, delta.version))


def publish_snapshot(client: "redis.Redis", cluster: str, table: RoutingTable) -> None:
    """Publish the whole table at its version: a starting point, or a repair after a loss."""
    if latest_version(client, cluster) is None:
        # A value that is not a version would fail the script.
        client.delete(keys.route_latest_key(cluster))
    client.eval(
        _PUBLISH_SNAPSHOT,
        4,
        keys.route_latest_key(cluster),
        keys.route_snapshot_key(cluster, table.version),
        keys.route_snapshots_key(cluster),
        keys.schemas_key(cluster),
        table.version,
        table.to_json(),
        *_texts(table.schemas),
    )


def _texts(schemas: Mapping[int, StreamSchema]) -> list[str]:
    """Return stream and schema in turn, as producers read them (`schemas_key`)."""
    return [text for stream, schema in schemas.items() for text in (str(stream), schema.to_text())]


def trim(client: "redis.Redis", cluster: str, committed: int) -> None:
    """Delete the versions that no reader needs after the commit of version `committed`.

    The newest snapshot at or before the kept versions stays: they are built on it.
    """
    index, bound = keys.route_snapshots_key(cluster), committed - KEPT_VERSIONS
    snapshots = cast("list[bytes]", client.zrangebyscore(index, 0, bound))
    if len(snapshots) < 2:  # noqa: PLR2004 - nothing behind the one that must stay
        return
    oldest, base = int(snapshots[0]), int(snapshots[-1])
    first = max(1, oldest - SNAPSHOT_EVERY + 1)
    deltas = [keys.route_delta_key(cluster, version) for version in range(first, base + 1)]
    old = [keys.route_snapshot_key(cluster, int(version)) for version in snapshots[:-1]]
    client.delete(*deltas, *old)
    client.zrem(index, *snapshots[:-1])


def latest_version(client: "redis.Redis", cluster: str) -> int | None:
    """Return the newest published version, or None before the first and for one that is none."""
    pipe = client.pipeline(transaction=False)
    pipe.get(keys.route_latest_key(cluster))
    (value,) = values_of(pipe)
    return decoded(
        client,
        cluster,
        EntryLocation.ROUTING,
        lambda text: None if text is None else whole(text),
        value,
    )


def unreadable_versions(client: "redis.Redis", cluster: str, versions: Sequence[int]) -> list[int]:
    """Return the versions without a delta that can be read."""
    names = [keys.route_delta_key(cluster, version) for version in versions]
    texts = cast("list[bytes | None]", client.mget(names)) if names else []
    return [
        version
        for version, text in zip(versions, texts, strict=True)
        if not list(readable(RoutingDelta.from_json, [text]))
    ]


def replace_delta(client: "redis.Redis", cluster: str, delta: RoutingDelta) -> None:
    """Write a delta in place of an unreadable value."""
    client.set(keys.route_delta_key(cluster, delta.version), delta.to_json())


def read_table(
    client: "redis.Redis", cluster: str, version: int, known: RoutingTable | None = None
) -> RoutingTable:
    """Return the table at `version`, built from `known` or the nearest snapshot plus deltas.

    Raises `RoutingMissing` if a part is gone from Redis, or cannot be read: a table without it
    would give other results.
    """
    if known is not None and known.version <= version:
        try:
            return _follow(client, cluster, known, version)
        except RoutingMissing:
            pass  # too far behind, or a repaired Redis that has only the snapshot
    return _follow(client, cluster, _nearest_snapshot(client, cluster, version), version)


def _follow(client: "redis.Redis", cluster: str, table: RoutingTable, version: int) -> RoutingTable:
    wanted = range(table.version + 1, version + 1)
    if not wanted:
        return table
    names = [keys.route_delta_key(cluster, number) for number in wanted]
    result = cast("list[bytes]", client.mget(names))
    return _intact(
        cluster, version, lambda: table.apply(*(RoutingDelta.from_json(text) for text in result))
    )


def _nearest_snapshot(client: "redis.Redis", cluster: str, version: int) -> RoutingTable:
    result = cast(
        "list[bytes]",
        client.zrevrangebyscore(keys.route_snapshots_key(cluster), version, 0, start=0, num=1),
    )
    if not result:
        return RoutingTable()
    text = client.get(keys.route_snapshot_key(cluster, int(result[0])))
    return _intact(cluster, version, lambda: RoutingTable.from_json(cast("bytes", text)))


def _intact(cluster: str, version: int, read: Callable[[], RoutingTable]) -> RoutingTable:
    try:
        return read()
    except Exception as error:
        raise RoutingMissing(cluster, version) from error
