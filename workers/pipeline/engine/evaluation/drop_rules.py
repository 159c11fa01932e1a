"""Dropping records and windows: the same ones in every replay and on every node."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.routing.drop_rules import ALWAYS, DropRule
from workers.pipeline.engine.evaluation.records import Int64s
from workers.pipeline.engine.hashing import mix_bits

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
SampleHashes = NDArray[np.uint64]


def sample_hashes(stream: int, position: str, records: int) -> SampleHashes:
    """Return a hash for each record of a block that depends on the record's id only.

    The id of a record is its stream, the position of its block, and its place there.
    """
    ms, _, sequence = position.partition("-")
    block = mix_bits(np.array([stream, int(ms), int(sequence)], np.uint64))
    with np.errstate(over="ignore"):
        base = (block * np.array([1, 3, 5], np.uint64)).sum(dtype=np.uint64)
        return mix_bits(base + np.arange(records, dtype=np.uint64) * _GOLDEN)


def is_dropped(rule: DropRule, hashes: SampleHashes, ts_ms: Int64s) -> NDArray[np.bool_]:
    """Return which records a rule drops: a random sample, or the records of dropped windows."""
    if not rule.window_ms:
        return _is_sampled(_with_seed(hashes, rule.seed), _shares(rule, ts_ms))
    if not len(ts_ms):
        return np.zeros(0, np.bool_)
    last = ts_ms // rule.slide_ms
    first = -((rule.window_ms - 1 - ts_ms) // rule.slide_ms)
    # The windows of these records alone: from 1970 on there would be millions.
    low, high = int(first.min()), int(last.max())
    starts = np.arange(low, high + 1) * rule.slide_ms
    # How many of the windows before each are dropped: a record goes where all of its are.
    before = np.concatenate([[0], np.cumsum(is_window_dropped(rule, starts))])
    return np.asarray(before[last + 1 - low] - before[first - low] == last + 1 - first)


def drops_all(rule: DropRule) -> bool:
    """Return whether a rule drops every record, of any event time."""
    return not rule.window_ms and rule.steps == ((ALWAYS, 1.0),)


def is_window_dropped(rule: DropRule, starts: Int64s) -> NDArray[np.bool_]:
    """Return which windows, by their starts (ms), an edge drops whole."""
    if not rule.window_ms:
        return np.zeros(len(starts), np.bool_)
    group = starts // (rule.slide_ms * rule.batch)
    hashes = _with_seed(group.astype(np.int64).view(np.uint64), rule.seed)
    # Neighbours that go together follow the step at the first of them.
    return _is_sampled(hashes, _shares(rule, group * rule.slide_ms * rule.batch))


def dropped_shares(rule: DropRule, ts_ms: Int64s) -> NDArray[np.float64]:
    """Return the probability at which a rule drops each record; 0 of rules that drop windows.

    A window that such a rule keeps has all its records.
    """
    return np.zeros(len(ts_ms)) if rule.window_ms else _shares(rule, ts_ms)


def _shares(rule: DropRule, times: Int64s) -> NDArray[np.float64]:
    since = np.array([step[0] for step in rule.steps])
    shares = np.array([0.0, *(step[1] for step in rule.steps)])
    return np.asarray(shares[np.searchsorted(since, times, "right")])


def _is_sampled(hashes: SampleHashes, shares: NDArray[np.float64]) -> NDArray[np.bool_]:
    # A float has 53 bits: a share of 1 drops all, of 0 none.
    return np.asarray((hashes >> np.uint64(11)).astype(np.float64) < shares * 2.0**53)


def _with_seed(hashes: SampleHashes, seed: int) -> SampleHashes:
    with np.errstate(over="ignore"):
        return mix_bits(hashes + np.uint64(seed) * _GOLDEN)
