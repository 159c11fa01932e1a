"""Cut the demonstration's day out of the source data.

python -m benchmarks.demo_data.taxis <folder of cab_sf_events.parquet, cab_sf_trip_queries.parquet>
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from workers.demo.recording import (
    DATA,
    METRES_PER_TILE,
    NO_SPEED,
    POSITIONS,
    SPAN_MS,
    START_MS,
    TRIPS,
    Ints,
    whole_column,
)

Flags = NDArray[np.bool_]

# A car reports about once a minute; after five minutes the way in between is unknown.
LONGEST_GAP_MS: Final = 5 * 60_000
# 216 km/h: above it one of the two positions must be wrong.
FASTEST_CM_S: Final = 6_000
TILES: Final = 100
# 100 m tiles to a side of a 1 km tile.
_PER_KM: Final = 10
# Room for any tile number in one half of a combined key.
_KEY: Final = 10_000


def parse_options(arguments: Sequence[str] | None = None, out: Path = DATA) -> argparse.Namespace:
    """Return the options of the command line; `out`: where files are written by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="folder of the source data")
    parser.add_argument("--out", type=Path, default=out, help="folder to write to")
    return parser.parse_args(arguments)


def main() -> None:
    """Write positions.parquet and trips.parquet."""
    arguments = parse_options()
    positions = slice_positions(pq.read_table(arguments.source / "cab_sf_events.parquet"))
    trips = slice_trips(pq.read_table(arguments.source / "cab_sf_trip_queries.parquet"), positions)
    for name, table in ((POSITIONS, positions), (TRIPS, trips)):
        pq.write_table(table, arguments.out / name, compression="zstd", compression_level=19)
        size = (arguments.out / name).stat().st_size
        sys.stdout.write(f"{name}: {table.num_rows:,} rows, {size:,} bytes\n")


def slice_positions(events: pa.Table) -> pa.Table:
    """Return the day's reports in its busiest tiles, with their speed: int16, null if unknown."""
    values = {name: whole_column(events, name) for name in ("car", "ts", "tile_x", "tile_y")}
    speeds = derive_speeds(values["car"], values["ts"], values["tile_x"], values["tile_y"])
    column = pa.array(speeds.astype(np.int16), mask=speeds == NO_SPEED)
    day = events.append_column("speed", column).filter(_in_day(events, "ts"))
    tiles = tile_keys(day, _PER_KM)
    return day.filter(np.isin(tiles, busiest(tiles, TILES)))


def slice_trips(trips: pa.Table, positions: pa.Table) -> pa.Table:
    """Return, one row per trip and tile, the trips that start in the day and cross its tiles."""
    watched = np.unique(tile_keys(positions, _PER_KM))
    day = trips.filter(_in_day(trips, "start")).drop_columns(["source_id"])
    return day.filter(np.isin(tile_keys(day, 1), watched))


def derive_speeds(car: Ints, ts_ms: Ints, tile_x: Ints, tile_y: Ints) -> Ints:
    """Return the speed at each report in cm/s, rounded, int64[n]; -1 where it is not known.

    Derived where the reports are produced: the previous report may lie in another tile, which a
    query on this tile's stream does not read (docs/decisions/0002-speed-at-the-producer.md).

    Reports may come in any order of cars but must be in order of time within a car. Positions are
    100 m tiles. Not known: at a car's first report, after a gap over five minutes, between two
    reports of one instant, and above 60 m/s.
    """
    order = np.argsort(car, kind="stable")
    passed_ms = np.diff(ts_ms[order])
    metres = METRES_PER_TILE * np.hypot(np.diff(tile_x[order]), np.diff(tile_y[order]))
    known = (np.diff(car[order]) == 0) & (passed_ms > 0) & (passed_ms <= LONGEST_GAP_MS)
    speeds = np.full(len(metres), NO_SPEED, np.int64)
    speeds[known] = np.rint(metres[known] * 100_000 / passed_ms[known]).astype(np.int64)
    speeds[speeds > FASTEST_CM_S] = NO_SPEED
    derived = np.full(len(car), NO_SPEED, np.int64)
    derived[order[1:]] = speeds
    return derived


def tile_keys(table: pa.Table, tiles_per_km: int) -> Ints:
    """Return the 1 km tile of each row as one number."""
    x, y = (whole_column(table, name) // tiles_per_km for name in ("tile_x", "tile_y"))
    return x * _KEY + y


def busiest(keys: Ints, count: int) -> Ints:
    """Return the most frequent keys; of equally frequent ones, the lower."""
    result, frequency = np.unique(keys, return_counts=True)
    most: Ints = result[np.argsort(-frequency, kind="stable")[:count]]
    return most


def _in_day(table: pa.Table, column: str) -> Flags:
    times = whole_column(table, column)
    inside: Flags = (times >= START_MS) & (times < START_MS + SPAN_MS)
    return inside


if __name__ == "__main__":
    main()
