"""Real queries: taxi trips over San Francisco, each reading the map tiles on its way.

Files, made from the Cabspotting data set: `cab_sf_trip_queries.parquet`, one row per query and
source (query_id, start, end, source_id, tile_x, tile_y), and `cab_sf_rate_tile1km_5min.parquet`,
position reports per tile and five minutes (ts, tile_x, tile_y, n). A file of the same columns
serves as well.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from algorithms.lab.datasets import read_columns
from algorithms.lab.placement.workloads.dynamics import comings_and_goings
from algorithms.lab.placement.workloads.events import Events
from algorithms.lab.placement.workloads.subscriptions import Subscriptions
from algorithms.vocabulary import Floats

TRIPS_FILE: Final = "cab_sf_trip_queries.parquet"
RATES_FILE: Final = "cab_sf_rate_tile1km_5min.parquet"

_TRIP_COLUMNS: Final = ("query_id", "source_id", "start", "end", "tile_x", "tile_y")
_RATE_COLUMNS: Final = ("ts", "tile_x", "tile_y", "n")
_BUCKET_MS: Final = 300_000


@dataclass(frozen=True, eq=False)
class Trips:
    """Trips in order of arrival, and where their sources lie.

    `starts`, `ends` float64[n]: seconds since the first start. `tiles` int64[m, 2]: x and y of
    each source's tile, in km.
    """

    subscriptions: Subscriptions
    starts: Floats
    ends: Floats
    tiles: NDArray[np.int64]

    def events(self) -> Events:
        """Return all arrivals and departures, in seconds since the first."""
        return comings_and_goings(self.starts, self.ends - self.starts, np.inf)


def read_trips(path: Path) -> Trips:
    """Read trips; sources are numbered as in the file, 0 the most popular.

    Raises `BadProblem` where the file or one of its columns is missing.
    """
    edges = read_columns(path, _TRIP_COLUMNS)
    firsts = np.flatnonzero(np.diff(edges["query_id"], prepend=-1))
    sources = int(edges["source_id"].max()) + 1
    indptr = np.append(firsts, len(edges["query_id"])).astype(np.int64)
    tiles = np.zeros((sources, 2), np.int64)
    tiles[edges["source_id"]] = np.stack([edges["tile_x"], edges["tile_y"]], axis=1)
    starts, ends = (edges[name][firsts] / 1_000 for name in ("start", "end"))
    return Trips(
        Subscriptions(indptr, edges["source_id"].astype(np.int32), sources),
        starts - starts[0],
        ends - starts[0],
        tiles,
    )


def tile_rates(path: Path, tiles: NDArray[np.int64]) -> Floats:
    """Return the mean records per second of each of `tiles` int64[m, 2], float64[m].

    The mean is over the whole span of the file; a tile that is not in it has rate 0.

    Raises `BadProblem` where the file or one of its columns is missing.
    """
    counts = read_columns(path, _RATE_COLUMNS)
    seconds = (counts["ts"].max() - counts["ts"].min() + _BUCKET_MS) / 1_000
    height = 1 + int(max(counts["tile_y"].max(), tiles[:, 1].max()))
    where = counts["tile_x"] * height + counts["tile_y"]
    wanted = tiles[:, 0] * height + tiles[:, 1]
    size = 1 + int(max(where.max(), wanted.max()))
    totals = np.bincount(where, weights=counts["n"], minlength=size)
    return np.asarray(totals[wanted] / seconds, np.float64)
