"""Maps of streams: the newest records of a stream by tiles of its coordinates."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from django.conf import settings

from algorithms.vocabulary import Floats
from controlplane.catalog.computations import schema_of
from controlplane.catalog.coordinates import Coordinates, coordinates_of
from controlplane.catalog.tiles import TileMap, tiles_of
from controlplane.models import Stream
from controlplane.wire.errors import InvalidBlock, LogUnavailable
from controlplane.wire.language.tree import NUMBERS
from controlplane.wire.log import open_log
from controlplane.wire.log.values import LogEntry
from controlplane.wire.records.record_codec import decode_block, nested_column
from controlplane.wire.schema import StreamSchema

# Blocks of the log that are read.
_BLOCKS: Final = 8
_LATITUDE, _LONGITUDE = 90.0, 180.0
_SAMPLE: Final = 200
# Columns of a place; ends of a time.
_BOTH: Final = 2


def stream_map(stream: Stream) -> TileMap | None:
    """Return the records/s by tile of the newest records of a stream.

    None without declared coordinates or records. Raises `LogUnavailable`.
    """
    schema, coordinates = schema_of(stream.schema), coordinates_of(stream)
    if schema is None or coordinates is None:
        return None
    entries = newest_entries(stream)
    x, y = points_of(entries, schema, coordinates)
    seconds = _seconds(entries)
    return tiles_of(coordinates, x, y, np.full(len(x), 1 / seconds))


def candidates(stream: Stream) -> list[str]:
    """Return the columns that may be coordinates: those of numbers."""
    schema = schema_of(stream.schema)
    kinds = {} if schema is None else schema.kinds
    return [name for name, kind in kinds.items() if kind in NUMBERS]


def suggested(stream: Stream) -> Coordinates | None:
    """Return two columns whose newest values are degrees of longitude and latitude.

    Both have fractions, and one of them is beyond no pole. None without records or such columns; a
    person confirms the choice.
    """
    schema = schema_of(stream.schema)
    names = candidates(stream)
    if schema is None or len(names) < _BOTH:
        return None
    try:
        entries = newest_entries(stream)[-1:]
    except LogUnavailable:
        return None
    values = {name: _column(entries, name)[:_SAMPLE] for name in names}
    degrees = [name for name in names if _are_degrees(values[name], _LONGITUDE)]
    latitudes = [name for name in degrees if _are_degrees(values[name], _LATITUDE)]
    if not latitudes or len(degrees) < _BOTH:
        return None
    # The column that leaves the range of latitudes is a longitude; otherwise the order decides.
    beyond = [name for name in degrees if name not in latitudes]
    latitude = next(name for name in latitudes)
    longitude = beyond[0] if beyond else next(name for name in degrees if name != latitude)
    return Coordinates(longitude, latitude)


def newest_entries(stream: Stream) -> Sequence[LogEntry]:
    """Return the newest blocks of a stream, oldest first. Raises `LogUnavailable`."""
    cluster = stream.cluster
    log = open_log(cluster.log_url, cluster.slug, settings.REDIS_URL)
    try:
        return log.newest_entries([stream.pk], _BLOCKS).get(stream.pk, [])
    finally:
        log.close()


def points_of(
    entries: Sequence[LogEntry], schema: StreamSchema, coordinates: Coordinates
) -> tuple[Floats, Floats]:
    """Return the coordinates of the records of blocks; NaN for null."""
    return _column(entries, coordinates.east), _column(entries, coordinates.north)


def _column(entries: Sequence[LogEntry], name: str) -> Floats:
    """Return a column of numbers of the records of blocks, NaN for null."""
    parts: list[Any] = []
    for entry in entries:
        try:
            records = decode_block(entry.block).records
        except InvalidBlock:
            continue
        column = nested_column(records, name)
        cast = pa.nulls(len(records), pa.float64()) if column is None else column.cast(pa.float64())
        parts.append(cast.to_numpy(zero_copy_only=False))
    return np.concatenate(parts) if parts else np.zeros(0)


def _seconds(entries: Sequence[LogEntry]) -> float:
    """Return the time between the first and the last append, a second at least.

    The first block arrived before it: its own time is that of the others, on average.
    """
    if len(entries) < _BOTH:
        return 1.0
    between = (entries[-1].appended_ms - entries[0].appended_ms) / 1000
    return max(1.0, between * len(entries) / (len(entries) - 1))


def _are_degrees(values: Floats, most: float) -> bool:
    known = values[np.isfinite(values)]
    if not len(known) or np.abs(known).max() > most:
        return False
    return bool((known % 1 != 0).any() and known.min() != known.max())
