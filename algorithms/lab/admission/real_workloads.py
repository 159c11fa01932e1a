"""Recorded workloads: rates of taxis, of the map tiles that they drive through, and of services.

`cars`, `tiles`: position reports of the taxis of San Francisco in a week of May 2008, counted in
5 minutes by car and by 1 km tile, as section 6.1.1 has them. `series`: 15 rates of tweets, servers
and taxi passengers in 5 or 30 minutes. The files belong in the folder of data sets.
"""

import csv
import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from algorithms.admission.metadata import StreamMetadata
from algorithms.errors import BadProblem
from algorithms.lab.admission.workloads import Workload, WorkloadSettings
from algorithms.lab.datasets import data_folder, read_columns
from algorithms.vocabulary import Floats, Ints, Seed

CARS_FILE: Final = "cab_sf_rate_car_5min.parquet"
TILES_FILE: Final = "cab_sf_rate_tile1km_5min.parquet"
SERIES_FILE: Final = "rate_series.csv.gz"

# Recorded streams of a workload: there are 516 cars and 1,705 tiles, most of them rarely active.
MAX_STREAMS: Final = 200
# One bucket of 5 minutes becomes one optimisation period of 10 s.
SPEEDUP: Final = 30.0
# The share of a split node that one stream may need at its maximum; see `_divided`.
LARGEST_SHARE: Final = 0.5
# Single buckets of the series have up to 300 times the mean; values above this quantile become it.
SERIES_QUANTILE: Final = 0.99
_BUCKET_S: Final = 300.0


@dataclass(frozen=True, eq=False)
class Record:
    """One recorded stream: `values` float64[b] per bucket of `bucket_s` seconds, in any unit."""

    values: Floats
    bucket_s: float


def draw_recorded(
    name: str, settings: WorkloadSettings, seed: Seed, speedup: float = SPEEDUP
) -> Workload:
    """Return a part of the record, its mean total scaled to the load level of the settings.

    The seed draws the time at which the replay starts; it runs `speedup` times faster than the
    record. Of the settings, `cycle_s` and `swing` do not apply. `cars` and `tiles` have the streams
    with the most reports, and keep their proportions. Stream i of `series` replays series i modulo
    15 from a time of its own, with a mean drawn as in the synthetic workloads. A stream that needs
    more than `LARGEST_SHARE` of a split node is divided into equal partitions, so a workload has
    more streams than the settings name. Known of each stream: average, minimum and maximum of its
    whole record.

    Raises `KeyError` for another name, `BadProblem` without the data, for more streams than
    `MAX_STREAMS`, and where a record is too short.
    """
    if not 1 <= settings.streams <= MAX_STREAMS:
        raise BadProblem("streams", f"must be from 1 to {MAX_STREAMS}, not {settings.streams}")
    rng = np.random.default_rng(seed)
    rates, statistics = RECORDED[name](settings, rng, speedup)
    total = rates.mean(axis=1).sum()
    if not total > 0:
        raise BadProblem(name, f"has only zeros in the {settings.steps} steps of seed {seed}")
    scale = settings.level * settings.capacity / total
    return _divided(rates * scale, statistics * scale, settings)


def _divided(rates: Floats, statistics: Floats, settings: WorkloadSettings) -> Workload:
    """Return the workload with streams in equal partitions of at most the largest share each.

    `statistics` float64[s, 3]: average, minimum and maximum.
    """
    limit = LARGEST_SHARE * settings.capacity
    partitions = np.maximum(1, np.ceil(statistics[:, 2] / limit - 1e-9)).astype(np.int64)
    rates = np.repeat(rates / partitions[:, None], partitions, axis=0)
    statistics = np.repeat(statistics / partitions[:, None], partitions, axis=0)
    metadata = [
        StreamMetadata(average=average, minimum=minimum, maximum=maximum)
        for average, minimum, maximum in statistics.tolist()
    ]
    return Workload(rates, tuple(metadata), settings.step_s)


def _cars(
    settings: WorkloadSettings, rng: np.random.Generator, speedup: float
) -> tuple[Floats, Floats]:
    return _replayed(_busiest(data_folder() / CARS_FILE, ("car",)), settings, rng, speedup)


def _tiles(
    settings: WorkloadSettings, rng: np.random.Generator, speedup: float
) -> tuple[Floats, Floats]:
    counts = _busiest(data_folder() / TILES_FILE, ("tile_x", "tile_y"))
    return _replayed(counts, settings, rng, speedup)


def _replayed(
    counts: Floats, settings: WorkloadSettings, rng: np.random.Generator, speedup: float
) -> tuple[Floats, Floats]:
    """Return rates float64[s, n] and statistics float64[s, 3] of the first streams.

    All streams start at the same time of the record.
    """
    chosen = counts[: settings.streams]
    buckets = _buckets(settings, counts.shape[1], _BUCKET_S, rng, speedup)
    return chosen[:, buckets], _statistics(chosen)


def _series(
    settings: WorkloadSettings, rng: np.random.Generator, speedup: float
) -> tuple[Floats, Floats]:
    records = read_series(data_folder() / SERIES_FILE)
    rates = np.empty((settings.streams, settings.steps))
    statistics = np.empty((settings.streams, 3))
    for stream, mean in enumerate(settings.means(rng).tolist()):
        record = records[stream % len(records)]
        values = record.values * (mean / record.values.mean())
        rates[stream] = values[_buckets(settings, len(values), record.bucket_s, rng, speedup)]
        statistics[stream] = _statistics(values[None, :])[0]
    return rates, statistics


RECORDED: Final[
    Mapping[
        str,
        Callable[[WorkloadSettings, np.random.Generator, float], tuple[Floats, Floats]],
    ]
] = {"cars": _cars, "tiles": _tiles, "series": _series}


def _statistics(values: Floats) -> Floats:
    """Return average, minimum and maximum of each row, float64[s, 3]."""
    low, high = values.min(axis=1), values.max(axis=1)
    # The sum of equal numbers may be rounded above their maximum.
    return np.stack([np.clip(values.mean(axis=1), low, high), low, high], axis=1)


def _buckets(
    settings: WorkloadSettings,
    count: int,
    bucket_s: float,
    rng: np.random.Generator,
    speedup: float,
) -> Ints:
    """Return the bucket of each step, int64[n], from a drawn bucket of `count` on."""
    offsets: Ints = np.floor(settings.times * (speedup / bucket_s) + 1e-9).astype(np.int64)
    needed = int(offsets[-1]) + 1
    if needed > count:
        recorded, replayed = count * bucket_s / speedup, settings.steps * settings.step_s
        why = f"the record lasts {recorded:g} s at {speedup:g} times its speed, not {replayed:g} s"
        raise BadProblem("steps", why)
    return offsets + rng.integers(count - needed + 1)


@lru_cache(maxsize=2)
def _busiest(path: Path, keys: tuple[str, ...]) -> Floats:
    """Return the counts of the streams with the most reports, float64[s, b], the busiest first.

    Raises `BadProblem` where the file or one of its columns is missing.
    """
    columns = read_columns(path, ("ts", *keys, "n"))
    bucket = (columns["ts"] - columns["ts"].min()) // round(1_000 * _BUCKET_S)
    places = np.stack([columns[key] for key in keys], axis=1)
    _, stream = np.unique(places, axis=0, return_inverse=True)
    totals = np.bincount(stream.ravel(), columns["n"])
    order = np.argsort(-totals, kind="stable")[:MAX_STREAMS]
    rank = np.full(len(totals), -1)
    rank[order] = np.arange(len(order))
    row = rank[stream.ravel()]
    counts = np.zeros((len(order), int(bucket.max()) + 1))
    np.add.at(counts, (row[row >= 0], bucket[row >= 0]), columns["n"][row >= 0])
    return counts


@lru_cache(maxsize=1)
def read_series(path: Path) -> tuple[Record, ...]:
    """Return the recorded series in order of their names; missing buckets are skipped.

    Values above `SERIES_QUANTILE` are limited to it. Raises `BadProblem` without the file, or if it
    has other columns or no values.
    """
    rows: dict[str, list[tuple[float, float]]] = {}
    try:
        with gzip.open(path, "rt", newline="") as file:
            for row in csv.DictReader(file):
                pair = float(row["value"]), float(row["bucket_s"])
                rows.setdefault(row["series"], []).append(pair)
    except OSError as error:
        raise BadProblem(str(path), "cannot be read") from error
    except (KeyError, ValueError) as error:
        raise BadProblem(str(path), "needs the columns series, bucket_s and value") from error
    records = [_record(np.array(pairs)) for _, pairs in sorted(rows.items())]
    used = tuple(record for record in records if record.values.any())
    if not used:
        raise BadProblem(str(path), "has no series")
    return used


def _record(pairs: Floats) -> Record:
    values = pairs[:, 0]
    return Record(np.minimum(values, np.quantile(values, SERIES_QUANTILE)), float(pairs[0, 1]))
