"""Maps of queries whose key is a place: the newest window by tiles."""

import numpy as np

from controlplane.catalog.coordinates import Coordinates, coordinates_of
from controlplane.catalog.queries import computed_by
from controlplane.catalog.tiles import TileMap, tiles_of
from controlplane.models import Cluster, Query
from controlplane.results.pages import keyed_windows
from controlplane.wire.language.tree import columns_in
from controlplane.wire.query import Computation

# Windows of the newest start that are read.
_WINDOWS = 2_000


def place_of_key(query: Query, computation: Computation) -> Coordinates | None:
    """Return the columns of the key that are a place, None if the key has none.

    A column is the place to the east if its expression reads only the column that all streams of
    the query declare as `east`; in the same way to the north.
    """
    declared = {coordinates_of(stream) for stream in query.streams.all()}
    if len(declared) != 1 or None in declared:
        return None
    (coordinates,) = declared
    assert coordinates is not None
    names: dict[str, str] = {}
    for name, expression in computation.key:
        read = {column.name for column in columns_in(expression)}
        if len(read) == 1:
            names.setdefault(read.pop(), name)
    if coordinates.east not in names or coordinates.north not in names:
        return None
    return Coordinates(names[coordinates.east], names[coordinates.north])


def window_map(cluster: Cluster, query: Query, value: str) -> TileMap | None:
    """Return the values of an aggregate by tile in the newest window; None without a place.

    Raises as `keyed_windows`.
    """
    place = place_of_key(query, computed_by(query))
    if place is None:
        return None
    windows = keyed_windows(cluster, query, _WINDOWS)
    newest = max((window.start for window in windows), default=None)
    rows = [window for window in windows if window.start == newest]
    axes = [[window.key.get(name) for window in rows] for name in (place.east, place.north)]
    values = [window.values.get(value) for window in rows]
    x, y, sizes = (np.array([_number(item) for item in column]) for column in (*axes, values))
    return tiles_of(place, x, y, sizes)


def _number(value: object) -> float:
    """Return a number of a result, NaN for another value."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")
