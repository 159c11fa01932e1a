"""The input of one split node in one batch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql.datasource import InputPartition

from controlplane.wire.topics.cut import SourceCut
from workers.pipeline.exchange.envelope import BatchHeader
from workers.pipeline.routing.compiled_table import CompiledTable
from workers.pipeline.sources.cluster_sources import SplitRanges
from workers.pipeline.split_nodes.grouping_states import StoredStates


@dataclass
class SplitPartition(InputPartition):
    """The input of one split node in one batch, and the header for the nodes.

    `ranges`: what it reads of all sources; `states`: of key groupings.
    """

    header: BatchHeader
    ranges: SplitRanges
    states: StoredStates


# One task reads a batch of at most so many records: a second one costs more than both read.
LIGHT_RECORDS: Final = 1000


@dataclass
class SplitGroup(InputPartition):
    """The split nodes of a light batch, which one task of Spark reads one after another."""

    parts: Sequence[SplitPartition]


def grouped(
    parts: Sequence[SplitPartition], records: int
) -> Sequence[SplitPartition] | Sequence[SplitGroup]:
    """Return what tasks read; `records`: those of the log in the batch.

    Sources are read in parallel, and so is a batch that has failed: one of its split nodes may end
    the task.
    """
    has_sources = any(part.ranges.sources or part.header.attempt > 1 for part in parts)
    is_light = records <= LIGHT_RECORDS and len(parts) > 1 and not has_sources
    return [SplitGroup(parts)] if is_light else parts


def parts_of(partition: InputPartition) -> Sequence[SplitPartition]:
    """Return the parts of what a task reads."""
    if isinstance(partition, SplitGroup):
        return partition.parts
    assert isinstance(partition, SplitPartition)
    return (partition,)


def open_splits(
    table: CompiledTable | None, splits: int, cuts: Mapping[int, SourceCut]
) -> Sequence[int]:
    """Return the split nodes that read a stream or a partition, the first one if none does.

    Another one is closed: it costs nothing, and opens with its first stream or partition. `splits`:
    how many there are without a table; `cuts`: those of the batch, by stream.
    """
    if table is None:
        return range(splits)
    assignment, sources = table.table.assignment, table.table.sources
    own = {assignment.of(s, n) for s, cut in cuts.items() if s in sources for n in cut.partitions}
    return sorted({*table.table.splits.values(), *own}) or [0]
