"""Recorded streams of keys: map tiles of taxis, words of books, requests to Wikipedia.

`tiles_1km`, `tiles_100m`: position reports of the taxis of San Francisco in a week of May 2008, by
map tile; `words`: words of thirteen books in reading order; `requests`: 14 s of requests to
Wikipedia in 2007, by URL. The files belong in the folder of data sets.
"""

import csv
import gzip
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from algorithms.errors import BadProblem
from algorithms.lab.datasets import data_folder, read_columns
from algorithms.lab.partitioning.workloads import Stream
from algorithms.partitioning.replay import key_hashes
from algorithms.vocabulary import Ints, SmallInts

TILES_FILE: Final = "cab_sf_events.parquet"
WORDS_FILE: Final = "words_books.parquet"
REQUESTS_FILE: Final = "wikipedia_requests.csv.gz"

# Tiles of 100 m in a tile of 1 km.
_TILES: Final = 10
# More than there are tiles from south to north.
_ROWS: Final = 1 << 15


def read_stream(name: str, seed: int = 0) -> Stream:
    """Return a whole recorded stream; the seed changes only the hashes of its keys.

    Raises `KeyError` for another name, `BadProblem` where the file or a column is missing.
    """
    stream = _read(RECORDED[name], data_folder())
    return Stream(stream.numbers, key_hashes(len(stream.hashes), seed), stream.times)


@lru_cache(maxsize=2)
def _read(reader: Callable[[Path], tuple[Ints, Ints | None]], folder: Path) -> Stream:
    keys, times = reader(folder)
    if not len(keys):
        raise BadProblem(str(folder), "has a recorded stream without messages")
    _, places = np.unique(keys, return_inverse=True)
    numbers: SmallInts = places.ravel().astype(np.int32)
    return Stream(numbers, key_hashes(int(numbers.max()) + 1), times)


def _tiles_1km(folder: Path) -> tuple[Ints, Ints | None]:
    return _tiles(folder, _TILES)


def _tiles_100m(folder: Path) -> tuple[Ints, Ints | None]:
    return _tiles(folder, 1)


def _tiles(folder: Path, size: int) -> tuple[Ints, Ints | None]:
    columns = read_columns(folder / TILES_FILE, ("ts", "tile_x", "tile_y"))
    keys = columns["tile_x"] // size * _ROWS + columns["tile_y"] // size
    return keys, columns["ts"]


def _words(folder: Path) -> tuple[Ints, Ints | None]:
    return read_columns(folder / WORDS_FILE, ("word_id",))["word_id"], None


def _requests(folder: Path) -> tuple[Ints, Ints | None]:
    path = folder / REQUESTS_FILE
    try:
        with gzip.open(path, "rt", newline="") as file:
            rows = [(int(row["key_id"]), int(row["ts_ms"])) for row in csv.DictReader(file)]
    except OSError as error:
        raise BadProblem(str(path), "cannot be read") from error
    except (KeyError, ValueError, TypeError) as error:
        raise BadProblem(str(path), "needs the columns key_id and ts_ms") from error
    table = np.array(rows, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


RECORDED: Final[Mapping[str, Callable[[Path], tuple[Ints, Ints | None]]]] = {
    "tiles_1km": _tiles_1km,
    "tiles_100m": _tiles_100m,
    "words": _words,
    "requests": _requests,
}
