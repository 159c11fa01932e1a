"""What is unread of a source, and the lines that pages show of its partitions."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import redis

from controlplane.wire import keys
from controlplane.wire.log.values import StreamBacklog
from controlplane.wire.topics.cut import PartitionPosition, SourceCut
from controlplane.wire.topics.places import place_of
from workers.pipeline.sources.plan import PartitionState, SourceState, partition_state

LINES: Final = {
    PartitionState.READ: "",
    PartitionState.ADDED: "was added in the last hour: keys may have moved between partitions",
    PartitionState.LOST: "records were deleted before they were read",
    PartitionState.RECREATED: "ends before the position: it was created again",
    PartitionState.MISSING: "does not exist any more",
}


NONE_ARRIVE: Final[Mapping[int, float]] = MappingProxyType({})


class SourceArrivals(NamedTuple):
    """The records of a source: since the first ends, unread; the newest event time read (ms)."""

    total: int
    unread: int
    newest_ms: int | None


def unread_of(place: PartitionPosition, ends: tuple[int, int] | None) -> int:
    """Return the unread messages of a partition."""
    return 0 if ends is None else max(0, ends[1] - max(place.offset, ends[0]))


def backlog_of(cut: SourceCut, state: SourceState, clock_ms: int) -> StreamBacklog | None:
    """Return the backlog after a cut, None without one; its age is that of the newest read."""
    unread = {n: unread_of(place, state.ends.get(n)) for n, place in cut.partitions.items()}
    total = sum(unread.values())
    times = [cut.partitions[n].appended_ms or clock_ms for n, count in unread.items() if count]
    return StreamBacklog(total, min(times)) if total else None


def status_of(
    cut: SourceCut | None,
    state: SourceState,
    clock_ms: int,
    arriving: Mapping[int, float] = NONE_ARRIVE,
    *,
    is_waiting: bool = False,
) -> dict[str, Any]:
    """Return the state of a source as JSON values; a source that waits has no unread records.

    `partitions`: by number topic (of a pattern), partition, offset, first offset, end, unread
    messages, seconds behind, state and a line about it; `number` is its number in the cut, and
    `recent` what has arrived lately, of `arriving`. `error`: why its place does not answer.
    """
    partitions = {} if cut is None else cut.partitions
    rows = [_row(number, place, state, clock_ms) for number, place in sorted(partitions.items())]
    rows = [{**row, "number": n, "recent": round(arriving.get(n, 0.0), 3)}
            for n, row in zip(sorted(partitions), rows, strict=True)]  # fmt: skip
    if is_waiting:
        rows = [{**row, "unread": 0} for row in rows]
    return {"clock_ms": clock_ms, "error": state.error, "partitions": rows}


def _row(
    number: int, place: PartitionPosition, state: SourceState, clock_ms: int
) -> dict[str, Any]:
    ends = state.ends.get(number)
    unread, known = unread_of(place, ends), partition_state(place, ends, clock_ms)
    seconds = (clock_ms - place.appended_ms) / 1000 if unread and place.appended_ms else 0.0
    first, end = ends or (0, 0)
    return {
        **place_of(state.topics, number)._asdict(), "offset": place.offset, "first": first,
        "end": end, "unread": unread,
        "seconds": round(max(0.0, seconds), 3), "state": known, "line": LINES[known],
        "lost": max(0, first - place.offset) if known is PartitionState.LOST else 0,
    }  # fmt: skip


def write_status(
    client: "redis.Redis", cluster: str, rows: Mapping[int, Mapping[str, Any]]
) -> None:
    """Replace what pages show of the sources of a cluster."""
    key = keys.sources_key(cluster)
    pipe = client.pipeline(transaction=True)
    pipe.delete(key)
    if rows:
        pipe.hset(key, mapping={str(stream): json.dumps(row) for stream, row in rows.items()})
    pipe.execute()
