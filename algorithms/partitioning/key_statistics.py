"""Statistics of a sample of keys: the number of distinct keys, and the exponent of a Zipf law."""

from typing import Any, Final

import numpy as np

from algorithms.vocabulary import Floats

# Keys with at most so many records in the sample are rare (Chao and Lee 1992; Chao and Yang 1993).
_RARE: Final = 10
# Ranks with fewer records are mostly in an order by chance.
_LEAST_RECORDS: Final = 5
_LEAST_RANKS: Final = 5
_MOST_RANKS: Final = 10_000
# An exponent beyond this has nearly all records on one key.
_LARGEST_EXPONENT: Final = 20.0
_BISECTIONS: Final = 60


def estimate_distinct(counts: Any) -> int:
    """Return an estimate of the number of keys of a stream, from the records per sampled key.

    `counts` int64[k], in any order. The coverage estimator ACE: rare keys are counted up by the
    share of the stream that they cover, 1 - singletons / their records, and by the variation of
    their frequencies. It is at least k, and too small for a stream of very many rare keys.
    """
    known = np.asarray(counts, np.int64)
    known = known[known > 0]
    rare = known[known <= _RARE]
    records, singletons = int(rare.sum()), int((known == 1).sum())
    if not singletons:
        return len(known)
    # With singletons only, their coverage is 0: half a record more makes it positive.
    coverage = 1 - min(singletons, records - 0.5) / records
    expected = len(rare) / coverage
    pairs = float((rare * (rare - 1)).sum())
    variation = max(0.0, expected * pairs / (records * max(1, records - 1)) - 1)
    return round(len(known) - len(rare) + expected + singletons / coverage * variation)


def zipf_exponent(counts: Any) -> float | None:
    """Return the exponent z of a Zipf law, by maximum likelihood on the most frequent keys.

    `counts` int64[k]: records per sampled key, in any order. The record of rank r has probability
    r^-z / sum; ranks with few records are left out. None if fewer than five keys remain.
    """
    known = np.sort(np.asarray(counts, np.float64))[::-1][:_MOST_RANKS]
    known = known[known >= _LEAST_RECORDS]
    if len(known) < _LEAST_RANKS:
        return None
    logs = np.log(np.arange(1, len(known) + 1, dtype=np.float64))
    mean = float(known @ logs / known.sum())
    # The likelihood is largest where the expected logarithm of the rank is the mean one.
    low, high = 0.0, _LARGEST_EXPONENT
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _expected_log(logs, middle) > mean else (low, middle)
    return round((low + high) / 2, 4)


def _expected_log(logs: Floats, exponent: float) -> float:
    weights = np.exp(-exponent * logs)
    return float(weights @ logs / weights.sum())
