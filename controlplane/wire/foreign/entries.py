"""The door for entries that others may have written: decode them, or skip and count them.

Whatever bytes are in Redis, a reader continues with the next entry. What it skips is counted in
Redis by place, which the page, the API and the metrics of the cluster show, and logged.
"""

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NoReturn, TypeVar, cast

import redis

from controlplane.wire.keys import skipped_key

logger = logging.getLogger("weir.foreign")
T = TypeVar("T")

# The cluster of entries that belong to none.
SITE: Final = ""
# Bytes of one entry; the telemetry of 100,000 streams has a third of it.
MAX_ENTRY_BYTES: Final = 32 * 2**20
# Numbers beyond are not counts or times: JSON exchanges whole numbers up to here.
MAX_WHOLE: Final = 2**53
# Seconds between two log lines about a place.
LOG_EVERY_S: Final = 60.0
_MAX_REASON: Final = 200
_LAST: Final = ":last"


class EntryLocation(StrEnum):
    """Where skipped entries were read."""

    TELEMETRY = "telemetry"
    PROGRESS = "progress reports"
    HEARTBEAT = "driver's heartbeat"
    ROUTING = "routing"
    FAULTS = "injected faults"
    GROUPINGS = "states of key groupings"
    ATTEMPTS = "attempts"
    MEASURES = "measures of tasks"
    KEY_SAMPLES = "samples of keys"
    RESULTS = "results"
    DEAD_LETTERS = "dead letters"
    LOG = "log"
    BEATS = "heartbeats of processes"
    CHILDREN = "supervisor's report"
    TASKS = "task queues"
    BROWSERS = "messages to browsers"


@dataclass(frozen=True, slots=True)
class SkippedEntries:
    """Entries that were skipped at a place; `reason` and `last_ms` of the last one."""

    place: str
    count: int
    reason: str
    last_ms: int


_seen: dict[tuple[str, EntryLocation], object] = {}
_logged: dict[tuple[str, EntryLocation], float] = {}


def decoded(
    client: "redis.Redis",
    cluster: str,
    place: EntryLocation,
    decode: Callable[[Any], T],
    value: Any,
    entry: object = None,
) -> T | None:
    """Return `decode(value)`; None for an entry that is skipped, also if the value is an error.

    `entry`: its id in a stream. Without one the value is a state, which is read again and again: it
    counts once per reason.
    """
    try:
        return decode(unfailed(value))
    except Exception as error:  # noqa: BLE001 - whatever a decoder raises for foreign bytes
        skip(client, cluster, place, error, entry)
        return None


def decoded_items(
    client: "redis.Redis",
    cluster: str,
    place: EntryLocation,
    rows: Any,
    decode: Callable[[str, bytes], T],
) -> list[T]:
    """Return `decode(name, value)` of the fields of a hash, without those that are skipped."""
    fields = decoded(client, cluster, place, lambda value: list(value.items()), rows) or []
    values = (
        decoded(client, cluster, place, lambda item: decode(item[0].decode(), item[1]), item)
        for item in fields
    )
    return [value for value in values if value is not None]


def hash_items(
    client: "redis.Redis",
    cluster: str,
    place: EntryLocation,
    key: str,
    decode: Callable[[str, bytes], T],
) -> list[T]:
    """Return `decode(name, value)` of the fields of the hash at a key. Raises `RedisError`."""
    pipe = client.pipeline(transaction=False)
    pipe.hgetall(key)
    (rows,) = values_of(pipe)
    return decoded_items(client, cluster, place, rows, decode)


def write_hash(client: "redis.Redis", key: str, fields: Mapping[str, Any]) -> None:
    """Write fields of a hash, in place of a value of another type. Raises `redis.RedisError`."""
    mapping: dict[Any, Any] = dict(fields)
    try:
        client.hset(key, mapping=mapping)
    except redis.ResponseError as error:
        if not is_other_type(error):
            raise
        client.delete(key)
        client.hset(key, mapping=mapping)


def unfailed(value: Any) -> Any:
    """Return the value of a command in a pipeline; raise its error, as for a key of another type.

    Raises `ValueError` for values that are too large.
    """
    if isinstance(value, Exception):
        raise value
    if isinstance(value, bytes) and len(value) > MAX_ENTRY_BYTES:
        raise ValueError(f"has {len(value):,} bytes, more than {MAX_ENTRY_BYTES:,}")
    return value


def values_of(pipe: Any) -> list[Any]:
    """Return the values of a pipeline's commands; the error in place of a key of another type.

    Raises `redis.RedisError` for all others.
    """
    values = cast("list[Any]", pipe.execute(raise_on_error=False))
    for value in values:
        if isinstance(value, Exception) and not is_other_type(value):
            raise value
    return values


def is_other_type(error: Exception) -> bool:
    """Return True if a command failed because its key has a value of another type."""
    return str(error).startswith("WRONGTYPE")


def readable(decode: Callable[[Any], T], values: Iterable[Any]) -> Iterator[T]:
    """Yield the decoded values, without those that cannot be decoded.

    For streams that another reader reads in their order and counts.
    """
    for value in values:
        with suppress(Exception):
            yield decode(unfailed(value))


def skip(
    client: "redis.Redis",
    cluster: str,
    place: EntryLocation,
    error: Exception,
    entry: object = None,
) -> None:
    """Count an entry that cannot be used, and log it; never raises."""
    # Printable: what is skipped may have been chosen to forge a line of the log.
    text = " ".join(f"{type(error).__name__}: {error}"[:_MAX_REASON].split())
    reason = repr(text)[1:-1]
    once = entry or reason
    if _seen.get((cluster, place)) == once:
        return
    _seen[cluster, place] = once
    with suppress(redis.RedisError):
        pipe = client.pipeline(transaction=False)
        pipe.hincrby(skipped_key(cluster), place, 1)
        pipe.hset(skipped_key(cluster), f"{place}{_LAST}", f"{time.time_ns() // 10**6} {reason}")
        pipe.execute()
    now = time.monotonic()
    if now - _logged.get((cluster, place), float("-inf")) >= LOG_EVERY_S:
        _logged[cluster, place] = now
        logger.warning("%s: skipped an entry (%s): %s", cluster or "site", place, reason)


def skipped_entries(client: "redis.Redis", cluster: str) -> list[SkippedEntries]:
    """Return what was skipped in a cluster, by place. Raises `redis.RedisError`."""
    row = cast("dict[bytes, bytes]", client.hgetall(skipped_key(cluster)))

    def read(place: EntryLocation) -> SkippedEntries:
        last_ms, _, reason = row.get(f"{place}{_LAST}".encode(), b"0").decode().partition(" ")
        return SkippedEntries(place, whole(row[place.encode()]), reason, whole(last_ms))

    return list(readable(read, EntryLocation))


def whole(value: Any) -> int:
    """Return a whole number of at most `MAX_WHOLE`. Raises `ValueError`, `TypeError`."""
    number = int(value)
    if abs(number) > MAX_WHOLE:
        raise ValueError("has a number that is too large")
    return number


def json_of(text: bytes) -> Any:
    """Return the value of JSON. Raises `ValueError`, also for NaN, and `RecursionError`."""
    return json.loads(unfailed(text), parse_constant=_refuse)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number of JSON")
