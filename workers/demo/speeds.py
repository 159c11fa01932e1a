"""Speed of a car, from two consecutive reports of its position.

Derived where the reports are produced: the previous report may lie in another tile, which a query
on this tile's stream does not read (docs/decisions/0002-speed-at-the-producer.md).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

NO_SPEED: Final = -1
# A car reports about once a minute; after five minutes the way in between is unknown.
LONGEST_GAP_MS: Final = 5 * 60_000
# 216 km/h: above it one of the two positions must be wrong.
FASTEST_CM_S: Final = 6_000
METRES_PER_TILE: Final = 100


def derive_speeds(car: Ints, ts_ms: Ints, tile_x: Ints, tile_y: Ints) -> Ints:
    """Return the speed at each report in cm/s, rounded, int64[n]; -1 where it is not known.

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
