"""Which split nodes read the streams of a cluster, and which part of each."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from controlplane.errors import Away
from controlplane.models import Cluster, Stream
from controlplane.telemetry.sources import source_statuses
from controlplane.wire.routing.split_assignment import (
    SplitAssignment,
    SplitReading,
    SplitShares,
    assigned,
)


def assignment_of(cluster: Cluster) -> SplitAssignment:
    """Return the split nodes of a cluster's streams and partitions."""
    rows = list(cluster.streams.values_list("id", "split", "partition_splits"))
    partitions = assigned((stream, own) for stream, _, own in rows)
    return SplitAssignment({stream: split for stream, split, _ in rows}, partitions, cluster.splits)


def partition_parts(cluster: Cluster) -> dict[int, dict[int, float]]:
    """Return by stream and partition the part of its records that has arrived there lately.

    Equal parts where that is not known. None of a stream of the log, of a source with one
    partition, of one whose partitions are not known, and while Redis does not respond.
    """
    with suppress(Away):
        return required_parts(cluster)
    return {}


def required_parts(cluster: Cluster) -> dict[int, dict[int, float]]:
    """Return the same; raises `Away` if the cluster has sources and Redis does not respond."""
    own = cluster.streams.exclude(source={}).only("id", "source")
    statuses = source_statuses(cluster.slug, list(own))
    return {stream: parts for stream, known in statuses.items() if (parts := known.parts)}


def shares_of(
    cluster: Cluster, streams: Sequence[Stream], parts: Mapping[int, Mapping[int, float]]
) -> SplitShares:
    """Return by stream which part of its records each split node reads; `parts`: of partitions."""
    partitions = assigned((stream.pk, stream.partition_splits) for stream in streams)
    splits = {stream.pk: stream.split for stream in streams}
    return SplitReading(SplitAssignment(splits, partitions, cluster.splits), parts).shares()


def reading_of(cluster: Cluster) -> SplitReading:
    """Return which split nodes read the streams of a cluster now."""
    return SplitReading(assignment_of(cluster), partition_parts(cluster))
