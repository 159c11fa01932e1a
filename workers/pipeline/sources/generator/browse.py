"""Events of a generator that are looked at."""

import time
from collections.abc import Iterator
from functools import partial

from controlplane.wire.schema import StreamSchema
from controlplane.wire.sources.generator import GeneratorSource
from workers.pipeline.sources.browse import BrowsedChunk, BrowsePlace, RecordsReader, StreamKey
from workers.pipeline.sources.generator.latest import ends_at
from workers.pipeline.sources.generator.read import chunk_of
from workers.pipeline.sources.topic.messages import row_text


def reader_of(
    source: GeneratorSource, schema: StreamSchema, place: BrowsePlace, key: StreamKey
) -> RecordsReader:
    """Return what generates events that have occurred."""
    del key
    return partial(_chunks, source, schema, place)


def _chunks(
    source: GeneratorSource, schema: StreamSchema, place: BrowsePlace
) -> Iterator[BrowsedChunk]:
    ends = ends_at(source, time.time_ns() // 1_000_000)
    ranges = place.ranges(ends, lambda time_ms: {
        number: end for number, (_, end) in ends_at(source, time_ms - 1).items()
    })  # fmt: skip
    for number, (start, stop) in ranges.items():
        if start < stop:
            chunk = chunk_of(source, schema, number, start, stop)
            texts = [row_text(row) for row in chunk.decoded.records.to_pylist()]
            yield BrowsedChunk(number, chunk, [""] * len(texts), texts)
