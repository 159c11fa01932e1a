"""The recorded day as arrays: its streams, position reports and trips."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from controlplane.wire.schema import ColumnSpec, StreamSchema
from workers.demo.program import MAX_FUTURE_S

Ints = NDArray[np.int64]

NO_SPEED: Final = -1
METRES_PER_TILE: Final = 100

# ts: when the taxi was there; x, y: metres on the map; speed: cm/s, whole so that sums are exact.
REPORT: Final = StreamSchema(
    (
        ColumnSpec("ts", "timestamp(ms)", nullable=False),
        ColumnSpec("car", "int32", nullable=False),
        ColumnSpec("x", "int32", nullable=False),
        ColumnSpec("y", "int32", nullable=False),
        ColumnSpec("speed", "int32"),
    ),
    event_time="ts",
    max_future_s=MAX_FUTURE_S,
)

DATA: Final = Path(__file__).parent / "data"
POSITIONS: Final = "positions.parquet"
TRIPS: Final = "trips.parquet"

# 2008-05-24T00:00Z: Friday, 17:00 in San Francisco. The liveliest night of the week comes first,
# and the day runs into its own beginning at about the same hour.
START_MS: Final = 1_211_587_200_000
SPAN_MS: Final = 24 * 3_600_000

# The map grid of the source data: south-west corner, and metres per degree at San Francisco.
_WEST, _SOUTH = -123.0, 37.2
_METRES_PER_LATITUDE = 111_320.0
_METRES_PER_LONGITUDE = _METRES_PER_LATITUDE * math.cos(math.radians(37.76))
_TILE_METRES = 1_000


@dataclass(frozen=True)
class RecordedTile:
    """A 1 km map tile whose reports are one stream; `reports` in the recorded day."""

    x: int
    y: int
    reports: int

    @property
    def name(self) -> str:
        """Name of the stream."""
        return f"tile-{self.x}-{self.y}"

    @property
    def latitude(self) -> float:
        """Latitude of the tile's centre, degrees north."""
        return _SOUTH + (self.y + 0.5) * _TILE_METRES / _METRES_PER_LATITUDE

    @property
    def longitude(self) -> float:
        """Longitude of the tile's centre, degrees east."""
        return _WEST + (self.x + 0.5) * _TILE_METRES / _METRES_PER_LONGITUDE

    def declaration(self, speed: float) -> dict[str, Any]:
        """Return the stream as it is registered when the day is replayed `speed` times as fast."""
        return {
            "name": self.name,
            "title": f"Taxis near {self.latitude:.3f} N, {-self.longitude:.3f} W",
            "schema": REPORT.to_json(),
            "declared_rate": round(self.reports * 1000 / SPAN_MS * speed, 4),
            "meta": {
                "tile_x": self.x,
                "tile_y": self.y,
                "latitude": round(self.latitude, 5),
                "longitude": round(self.longitude, 5),
            },
        }


@dataclass(frozen=True, eq=False)
class CarReports:
    """Reports in order of time: `at` milliseconds into the day, `tile` number in `tiles`.

    `x`, `y` in metres on the map, `speed` in cm/s with -1 where it is not known; all int64[n].
    """

    at: Ints
    tile: Ints
    car: Ints
    x: Ints
    y: Ints
    speed: Ints


@dataclass(frozen=True, eq=False)
class Trips:
    """Trips: `number`, `start` and `end` in milliseconds into the day, int64[t]; tiles of each."""

    number: Ints
    start: Ints
    end: Ints
    tiles: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Recording:
    """The recorded day; tiles are ordered from the busiest."""

    tiles: tuple[RecordedTile, ...]
    positions: CarReports
    trips: Trips


def load_recording(folder: Path = DATA) -> Recording:
    """Read the day that `benchmarks.demo_data.taxis` cut out."""
    reports = pq.read_table(folder / POSITIONS)
    x, y = whole_column(reports, "tile_x"), whole_column(reports, "tile_y")
    tiles = _ranked_tiles(x // 10, y // 10)
    numbers = {(tile.x, tile.y): number for number, tile in enumerate(tiles)}
    positions = CarReports(
        at=whole_column(reports, "ts") - START_MS,
        tile=np.array(
            [numbers[key] for key in zip((x // 10).tolist(), (y // 10).tolist(), strict=True)]
        ),
        car=whole_column(reports, "car"),
        x=x * METRES_PER_TILE,
        y=y * METRES_PER_TILE,
        speed=whole_column(reports, "speed"),
    )
    recording = Recording(tiles, positions, _trips(pq.read_table(folder / TRIPS), numbers))
    # Else a third of this process's memory is what was freed.
    pa.default_memory_pool().release_unused()
    return recording


def _ranked_tiles(x: Ints, y: Ints) -> tuple[RecordedTile, ...]:
    result, reports = np.unique(np.stack([x, y]), axis=1, return_counts=True)
    order = np.argsort(-reports, kind="stable")
    return tuple(
        RecordedTile(int(result[0, index]), int(result[1, index]), int(reports[index]))
        for index in order.tolist()
    )


def _trips(edges: pa.Table, numbers: dict[tuple[int, int], int]) -> Trips:
    number, first = np.unique(whole_column(edges, "query_id"), return_index=True)
    crossed: dict[int, list[int]] = {}
    columns = (edges[name].to_pylist() for name in ("query_id", "tile_x", "tile_y"))
    for trip, x, y in zip(*columns, strict=True):
        crossed.setdefault(trip, []).append(numbers[x, y])
    return Trips(
        number=number,
        start=whole_column(edges, "start")[first] - START_MS,
        end=whole_column(edges, "end")[first] - START_MS,
        tiles=tuple(tuple(sorted(crossed[trip])) for trip in number.tolist()),
    )


def whole_column(table: pa.Table, name: str) -> Ints:
    """Return a column of whole numbers, with -1 instead of null."""
    column = table[name].cast(pa.int64()).combine_chunks()
    return np.asarray(pc.fill_null(column, pa.scalar(NO_SPEED, pa.int64())), np.int64)
