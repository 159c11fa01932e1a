"""Tiles of a map: sums of values by place, for streams and for results of queries."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.catalog.coordinates import Coordinates

# Tiles from west to east; from south to north as the range requires, within these.
ACROSS: Final = 28
_LEAST_UP, _MOST_UP = 6, 28
# Points outside of the middle 99 % do not widen the map.
_CUT: Final = 0.5


@dataclass(frozen=True)
class MapTile:
    """A tile: its place from the west and from the south, its records or value."""

    column: int
    row: int
    value: float


@dataclass(frozen=True)
class TileMap:
    """Tiles of a range of coordinates; tiles without a point are left out.

    `value`: what a tile has, `most` the largest. `points`: how many there are, `outside`: of them
    outside of the range.
    """

    coordinates: Coordinates
    west: float
    east: float
    south: float
    north: float
    across: int
    up: int
    tiles: Sequence[MapTile]
    most: float
    points: int
    outside: int


def tiles_of(coordinates: Coordinates, x: Floats, y: Floats, values: Floats) -> TileMap | None:
    """Return the sums of values by tile; None without a finite point."""
    known = np.isfinite(x) & np.isfinite(y) & np.isfinite(values)
    x, y, values = x[known], y[known], values[known]
    if not len(x):
        return None
    west, east = _range(x)
    south, north = _range(y)
    up = round(ACROSS * (north - south) / (east - west))
    up = min(max(up, _LEAST_UP), _MOST_UP)
    inside = (x >= west) & (x <= east) & (y >= south) & (y <= north)
    columns = np.minimum((ACROSS * (x[inside] - west) / (east - west)).astype(int), ACROSS - 1)
    rows = np.minimum((up * (y[inside] - south) / (north - south)).astype(int), up - 1)
    sums = np.zeros((up, ACROSS))
    np.add.at(sums, (rows, columns), values[inside])
    tiles = [
        MapTile(int(column), int(row), float(sums[row, column]))
        for row, column in np.argwhere(sums != 0).tolist()
    ]
    return TileMap(
        coordinates, west, east, south, north, ACROSS, up, tiles,
        float(np.abs(sums).max()), len(x), int((~inside).sum()),
    )  # fmt: skip


def _range(values: Floats) -> tuple[float, float]:
    """Return the ends of the middle 99 % of values, never equal."""
    # Of few values, the ends are the first and the last.
    low = float(np.percentile(values, _CUT, method="lower"))
    high = float(np.percentile(values, 100 - _CUT, method="higher"))
    if math.isclose(low, high):
        low, high = low - 0.5, high + 0.5
    return low, high
