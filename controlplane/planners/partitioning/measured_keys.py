"""The keys of a query, measured: all samples of a time as one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.partitioning.key_statistics import estimate_distinct
from algorithms.vocabulary import Floats, Ints
from controlplane.wire.key_samples import KeySample


@dataclass(frozen=True, eq=False)
class MeasuredKeys:
    """The keys of a query in samples of some time.

    `sampled_ms`: the time of the newest sample. `records_per_s`: of the query; `task_rates`
    float64[n]: of each task. `hashes` uint64[k], `shares` float64[k]: the sampled keys, the most
    frequent first, and their shares of all records; `counts` int64[k]: their records in the
    samples. `labels`: texts of keys by hash; `tasks`, `streams`: records in the samples by task and
    by stream, of the same keys.
    """

    sampled_ms: int
    records_per_s: float
    task_rates: Floats
    hashes: Any
    shares: Floats
    counts: Ints
    labels: Mapping[int, str]
    tasks: Mapping[int, Mapping[int, int]]
    streams: Mapping[int, Mapping[int, int]]

    @property
    def sampled(self) -> int:
        """Return the number of records in the samples."""
        return int(self.counts.sum())

    @property
    def distinct(self) -> int:
        """Return the estimated number of keys."""
        return estimate_distinct(self.counts)

    @property
    def pairs(self) -> int:
        """Return the pairs of a key and a task among the keys with known tasks."""
        return sum(map(len, self.tasks.values()))

    @property
    def top_share(self) -> float:
        """Return the share of the most frequent key."""
        return float(self.shares[:1].sum())

    @property
    def top10_share(self) -> float:
        """Return the share of the ten most frequent keys."""
        return float(self.shares[:10].sum())


def measured_keys(samples: Sequence[KeySample]) -> MeasuredKeys | None:
    """Return all samples of a query as one, None without records.

    `samples`: oldest first. Samples of another number of tasks than the newest one are left out.
    """
    count = len(samples[-1].task_records) if samples else 0
    alike = [row for row in samples if len(row.task_records) == count]
    used = [row for row in alike if row.hashes]
    if not used:
        return None
    hashes, shares, counts = _keys(used)
    return MeasuredKeys(
        used[-1].clock_ms,
        *_rates(alike),
        hashes,
        shares,
        counts,
        {key: label for row in used for key, label in zip(row.hashes, row.labels, strict=False)},
        _counted((row.hashes, row.tasks) for row in used),
        _counted((row.hashes, row.streams) for row in used),
    )


def _keys(samples: Sequence[KeySample]) -> tuple[Any, Floats, Ints]:
    """Return the distinct keys, their shares of all records, and their sampled records."""
    sizes = [len(row.hashes) for row in samples]
    hashes, places = np.unique(
        np.concatenate([np.array(row.hashes, np.uint64) for row in samples]), return_inverse=True
    )
    counts = np.concatenate([np.array(row.counts, np.int64) for row in samples])
    # A sampled record stands for as many records as its batch has per sampled one.
    weights = np.repeat([row.records / max(1, row.sampled) for row in samples], sizes)
    records = np.bincount(places, weights * counts, len(hashes))
    sampled = np.bincount(places, counts, len(hashes)).astype(np.int64)
    order = np.lexsort((hashes, -records))
    return hashes[order], records[order] / records.sum(), sampled[order]


def _rates(samples: Sequence[KeySample]) -> tuple[float, Floats]:
    """Return the records/s of the query and of each task: the sums over split nodes."""
    tasks = np.zeros(len(samples[-1].task_records))
    for split in {row.split for row in samples}:
        # The first batch of a driver has no time before it.
        rows = [row for row in samples if row.split == split and row.elapsed_ms > 0]
        if rows:
            seconds = sum(row.elapsed_ms for row in rows) / 1000
            tasks += np.array([row.task_records for row in rows], np.float64).sum(axis=0) / seconds
    return float(tasks.sum()), tasks


def _counted(
    samples: Iterable[tuple[Sequence[int], Sequence[Mapping[int, int]]]],
) -> dict[int, dict[int, int]]:
    """Return the records of each key by task or stream, summed over samples."""
    result: dict[int, dict[int, int]] = {}
    for hashes, rows in samples:
        for key, of_key in zip(hashes, rows, strict=False):
            known = result.setdefault(key, {})
            for place, records in of_key.items():
                known[place] = known.get(place, 0) + records
    return result
