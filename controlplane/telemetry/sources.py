"""How far the pipeline has read the sources of streams, as it last planned a batch."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from redis.exceptions import RedisError

from controlplane.connections import redis_client
from controlplane.errors import Away
from controlplane.models import Cluster, Stream
from controlplane.telemetry.samples import moment_of
from controlplane.wire import keys

_RETRY_S: Final = 5
# Partitions of a topic that a page shows.
_SHOWN: Final = 200


@dataclass(frozen=True)
class PartitionStatus:
    """How far a partition is read.

    `first`, `end`: the offsets that the source has; `unread`: records; `seconds`: how old the
    newest read record is while some are unread. `state`: read, added, lost, recreated or missing;
    `lost`: records that were deleted unread; `line`: what has happened, empty for nothing.
    `topic`: of a pattern that of the partition, else empty. `number`: in cuts and assignments;
    `recent`: records that have arrived in the last minutes, newer ones counting more; `split`: the
    split node that reads it, None where that was not asked for.
    """

    partition: int
    offset: int
    first: int
    end: int
    unread: int
    seconds: float
    state: str
    lost: int
    line: str
    topic: str = ""
    number: int = 0
    recent: float = 0.0
    split: int | None = None

    @property
    def name(self) -> str:
        """Return the number of the partition, behind its topic if that is one of a pattern."""
        return f"{self.topic}-{self.partition}" if self.topic else str(self.partition)


@dataclass(frozen=True)
class SourceStatus:
    """How far the source of a stream is read, when the pipeline last planned a batch.

    `error`: why its place does not answer, empty if it does.
    """

    planned_at: datetime
    error: str
    partitions: Sequence[PartitionStatus]

    @property
    def unread(self) -> int:
        """Return the number of unread records."""
        return sum(partition.unread for partition in self.partitions)

    @property
    def lag_s(self) -> float:
        """Return the largest lag of a partition in seconds."""
        return max((partition.seconds for partition in self.partitions), default=0.0)

    @property
    def parts(self) -> dict[int, float]:
        """Return the part of recent records by partition; empty for a source that has only one.

        Equal parts before records arrive.
        """
        recent = {row.number: row.recent for row in self.partitions}
        if recent.keys() <= {0}:
            return {}
        total = sum(recent.values())
        equal = 1 / len(recent)
        return {n: count / total if total else equal for n, count in recent.items()}

    @property
    def shown(self) -> Sequence[PartitionStatus]:
        """Return the partitions that a page shows: of many those with a line or unread records."""
        if len(self.partitions) <= _SHOWN:
            return self.partitions
        return sorted(self.partitions, key=lambda row: (not row.line, -row.unread))[:_SHOWN]

    @property
    def trouble(self) -> str:
        """Return what a person should know of the source, empty for nothing."""
        if self.error:
            return f"the source cannot be read: {self.error}"
        lines: dict[str, list[str]] = {}
        for partition in self.partitions:
            if partition.line:
                lines.setdefault(partition.line, []).append(partition.name)
        return "; ".join(f"{line} (partition {', '.join(names)})" for line, names in lines.items())


def source_status(stream: Stream) -> SourceStatus | None:
    """Return how far the source of a stream is read, None before the pipeline has asked for it.

    With the split nodes of its partitions. Raises `Away` if Redis does not answer.
    """
    status = source_statuses(stream.cluster.slug, [stream]).get(stream.pk)
    if status is None:
        return None
    of = stream.assignment.of
    rows = [replace(row, split=of(stream.pk, row.number)) for row in status.partitions]
    return replace(status, partitions=rows)


def source_statuses(slug: str, streams: Sequence[Stream]) -> dict[int, SourceStatus]:
    """Return by stream how far sources of one cluster are read, as `source_status`."""
    names = [str(stream.pk) for stream in streams if stream.source]
    if not names:
        return {}
    try:
        texts: Any = redis_client().hmget(keys.sources_key(slug), names)
    except RedisError as error:
        raise Away("redis_away", f"Redis does not respond: {error}", _RETRY_S) from None
    return {int(name): _status(json.loads(text))
            for name, text in zip(names, texts, strict=True) if text}  # fmt: skip


def has_unread(slug: str) -> bool:
    """Return whether sources of a cluster have unread records; True if Redis does not respond."""
    try:
        texts: Any = redis_client().hvals(keys.sources_key(slug))
    except RedisError:
        return True
    return any(_status(json.loads(text)).unread for text in texts)


def _status(row: Mapping[str, Any]) -> SourceStatus:
    # A driver of an earlier release writes no numbers.
    partitions = [PartitionStatus(**{"number": partition["partition"], **partition})
                  for partition in row["partitions"]]  # fmt: skip
    return SourceStatus(moment_of(row["clock_ms"]), row["error"], partitions)


def known_sources(clusters: Iterable[Cluster]) -> list[tuple[tuple[str, str], SourceStatus]]:
    """Return the known sources of clusters, with the names of cluster and stream.

    Empty while Redis does not respond.
    """
    slugs = {cluster.pk: cluster.slug for cluster in clusters}
    result = []
    with suppress(Away):
        for cluster, own in _streams_with_sources(slugs).items():
            names = {stream.pk: stream.name for stream in own}
            statuses = source_statuses(slugs[cluster], own)
            result += [((slugs[cluster], names[pk]), item) for pk, item in statuses.items()]
    return result


def _streams_with_sources(clusters: Iterable[int]) -> dict[int, list[Stream]]:
    streams: dict[int, list[Stream]] = {}
    for stream in Stream.objects.filter(cluster__in=list(clusters)).exclude(source={}):
        streams.setdefault(stream.cluster_id, []).append(stream)
    return streams


@dataclass(frozen=True)
class WorstSource:
    """The source of a cluster that is the farthest behind, and why, for people.

    `is_troubled`: whether something has happened besides the lag.
    """

    lag_s: float
    text: str
    is_troubled: bool


def worst_sources(slugs: Mapping[int, str]) -> dict[int, WorstSource]:
    """Return by cluster the source that needs a person most; `slugs`: by cluster.

    Trouble comes before lag. Raises `Away`.
    """
    worst: dict[int, WorstSource] = {}
    for cluster, own in _streams_with_sources(slugs).items():
        names = {stream.pk: stream.name for stream in own}
        statuses = source_statuses(slugs[cluster], own)
        every = [_candidate(names[pk], status) for pk, status in statuses.items()]
        if every:
            worst[cluster] = max(every, key=lambda item: (item.is_troubled, item.lag_s))
    return worst


def _candidate(name: str, status: SourceStatus) -> WorstSource:
    why = status.trouble or f"{status.unread:,} records are unread"
    return WorstSource(status.lag_s, f"{name}: {why}", bool(status.trouble))
