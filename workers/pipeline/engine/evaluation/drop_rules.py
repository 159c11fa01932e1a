"""Dropping records and windows: the same ones in every replay and on every node."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from controlplane.wire.routing.drop_rules import Shed
from workers.pipeline.engine.evaluation.records import Int64s

_MIX: Final = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
Luck = NDArray[np.uint64]


def luck_of(stream: int, position: str, records: int) -> Luck:
    """Return a number for each record of a block that depends on its id alone.

    The id of a record is its stream, the position of its block, and its place there.
    """
    ms, _, sequence = position.partition("-")
    block = _mixed(np.array([stream, int(ms), int(sequence)], np.uint64))
    with np.errstate(over="ignore"):
        base = (block * np.array([1, 3, 5], np.uint64)).sum(dtype=np.uint64)
        return _mixed(base + np.arange(records, dtype=np.uint64) * _GOLDEN)


def is_dropped(shed: Shed, luck: Luck, ts_ms: Int64s) -> NDArray[np.bool_]:
    """Return which records an arc drops: those of bad luck, or of dropped windows alone."""
    if not shed.window_ms:
        return _is_below(_with_seed(luck, shed.seed), _shares(shed, ts_ms))
    if not len(ts_ms):
        return np.zeros(0, np.bool_)
    last = ts_ms // shed.slide_ms
    first = -((shed.window_ms - 1 - ts_ms) // shed.slide_ms)
    # The windows of these records alone: from 1970 on there would be millions.
    low, high = int(first.min()), int(last.max())
    starts = np.arange(low, high + 1) * shed.slide_ms
    # How many of the windows before each are dropped: a record goes where all of its are.
    before = np.concatenate([[0], np.cumsum(is_window_dropped(shed, starts))])
    return np.asarray(before[last + 1 - low] - before[first - low] == last + 1 - first)


def is_window_dropped(shed: Shed, starts: Int64s) -> NDArray[np.bool_]:
    """Return which windows, by their starts (ms), an arc drops whole."""
    if not shed.window_ms:
        return np.zeros(len(starts), np.bool_)
    group = starts // (shed.slide_ms * shed.batch)
    luck = _with_seed(group.astype(np.int64).view(np.uint64), shed.seed)
    # Neighbours that go together follow the step at the first of them.
    return _is_below(luck, _shares(shed, group * shed.slide_ms * shed.batch))


def _shares(shed: Shed, times: Int64s) -> NDArray[np.float64]:
    since = np.array([step[0] for step in shed.steps])
    shares = np.array([0.0, *(step[1] for step in shed.steps)])
    return np.asarray(shares[np.searchsorted(since, times, "right")])


def _is_below(luck: Luck, shares: NDArray[np.float64]) -> NDArray[np.bool_]:
    # 53 bits are what a float tells apart: a share of 1 drops all, of 0 none.
    return np.asarray((luck >> np.uint64(11)).astype(np.float64) < shares * 2.0**53)


def _with_seed(luck: Luck, seed: int) -> Luck:
    with np.errstate(over="ignore"):
        return _mixed(luck + np.uint64(seed) * _GOLDEN)


def _mixed(values: Luck) -> Luck:
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(33))) * _MIX[0]
        values = (values ^ (values >> np.uint64(33))) * _MIX[1]
    return np.asarray(values ^ (values >> np.uint64(33)))
