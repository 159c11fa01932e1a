"""Ranges of events, which each worker computes for itself."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.generator import EventKind, GeneratorSource
from workers.pipeline.sources.entries import Chunk, Decoded, RangeRecords
from workers.pipeline.sources.generator.nexmark import Events, batch_of, numbers_of
from workers.pipeline.sources.generator.rates import RateShape
from workers.pipeline.sources.plan import SourceRanges

_CHUNK: Final = 10_000
_NO_FAULTS: Final[dict[int, str]] = {}


def read_ranges(
    part: SourceRanges, source: GeneratorSource, schema: StreamSchema, clock_ms: int
) -> Iterator[RangeRecords]:
    """Yield the events of each range of a part, in order."""
    del clock_ms
    for item in part.ranges:
        chunks = (
            chunk_of(source, schema, item.partition, first, min(first + _CHUNK, item.stop))
            for first in range(item.start, item.stop, _CHUNK)
        )
        yield RangeRecords(item, chunks, item.stop - item.start)


def chunk_of(
    source: GeneratorSource, schema: StreamSchema, partition: int, start: int, stop: int
) -> Chunk:
    """Return the events [start, stop) of a partition."""
    offsets, kind = np.arange(start, stop), EventKind(source.event)
    numbers = numbers_of(kind, offsets * source.partitions + partition)
    seconds = RateShape(source.rate, source.period_s).seconds_of(numbers)
    times: Any = source.start_ms + np.floor(seconds * 1000).astype(np.int64)
    records = batch_of(kind, Events(source.seed, numbers, times), schema.arrow)
    decoded = Decoded(records, np.arange(stop - start), _NO_FAULTS)
    return Chunk(range(start, stop), times.tolist(), records.nbytes, decoded, lambda _: b"")
