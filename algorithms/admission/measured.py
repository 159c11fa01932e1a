"""Characteristics of a stream as its past rates show them, beside those that are declared."""

from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

import numpy as np

from algorithms.admission.metadata import StreamMetadata, Transition
from algorithms.vocabulary import Floats

# Fewer rates show nothing but their average.
LEAST: Final = 12
# A period is believed from this autocorrelation on.
STRENGTH: Final = 0.5
# A share of the largest autocorrelation that is as good.
_NEAR: Final = 0.9
# Usual rates lie between these percentiles; the rest are outliers.
_USUAL: Final = (5.0, 95.0)
# Rates that vary less than this, relative to their mean, have no period and no bursts.
_STEADY: Final = 0.1
# A jump leaves so few rates in the middle half between minimum and maximum.
_BETWEEN: Final = 0.2


@dataclass(frozen=True, slots=True)
class MeasuredCharacteristics:
    """Measured characteristics; `strength`: the autocorrelation of the period, None without one."""

    metadata: StreamMetadata
    strength: float | None = None


def measured(rates: Floats, seconds: float) -> MeasuredCharacteristics:
    """Return the characteristics of past rates float64[t] of periods of `seconds`; NaN: not known.

    Minimum and maximum are the percentiles 5 and 95, the peak is the highest rate.
    """
    known = rates[~np.isnan(rates)]
    if not len(known):
        return MeasuredCharacteristics(StreamMetadata())
    low, high = np.percentile(known, _USUAL).tolist()
    peak = float(known.max())
    # Rounding can raise the mean of equal rates above all of them.
    average = min(float(known.mean()), peak)
    low, high = min(low, average), min(max(high, average), peak)
    values = {"rate": float(known[-1]), "average": average, "minimum": low, "maximum": high}
    row = StreamMetadata(**values, peak=max(peak, high, average))
    if len(known) < LEAST or float(known.std()) < _STEADY * average:
        return MeasuredCharacteristics(row)
    period, strength = period_of(known)
    over = known > (low + high) / 2
    row = replace(row, transition=_transition(known, low, high))
    if period:
        high_s = float(over.mean()) * period * seconds
        row = replace(row, period_s=period * seconds, high_s=high_s)
        return MeasuredCharacteristics(row, round(strength, 3))
    burst_s, pause_s = (_mean_run(over, wanted=wanted) * seconds for wanted in (True, False))
    return MeasuredCharacteristics(replace(row, burst_s=burst_s, pause_s=pause_s))


def period_of(rates: Floats) -> tuple[int, float]:
    """Return after how many rates they repeat, and the autocorrelation; (0, 0.0) if they do not.

    The period is the first lag near the largest autocorrelation behind the first negative one, at
    most half of the history.
    """
    centred = rates - rates.mean()
    power = np.abs(np.fft.rfft(centred, 2 * len(centred))) ** 2
    products = np.fft.irfft(power)[: len(centred)]
    # Each lag has a sum over fewer products than the one before it.
    count = np.arange(len(centred), 0, -1)
    correlation = products / count / max(float(products[0]) / len(centred), 1e-300)
    half = correlation[: len(centred) // 2 + 1]
    negative = np.flatnonzero(half < 0)
    if not len(negative):
        return 0, 0.0
    tail = half[int(negative[0]) :]
    if float(tail.max()) < STRENGTH:
        return 0, 0.0
    # Multiples of the period are as good: the first peak near the highest one is the period.
    near = tail >= _NEAR * float(tail.max())
    start = int(near.argmax())
    stop = start + int((~near[start:]).argmax()) if not near[start:].all() else len(tail)
    best = int(negative[0]) + start + int(tail[start:stop].argmax())
    return best, min(float(half[best]), 1.0)


def _transition(rates: Floats, low: float, high: float) -> Transition:
    quarter = (high - low) / 4
    between = (rates > low + quarter) & (rates < high - quarter)
    return Transition.JUMP if float(between.mean()) < _BETWEEN else Transition.TREND


def _mean_run(over: "np.ndarray[tuple[int], np.dtype[np.bool_]]", *, wanted: bool) -> float:
    """Return the mean number of consecutive values that are `wanted`, 0 if there is none."""
    runs = [len(list(group)) for value, group in groupby(over.tolist()) if value == wanted]
    return float(np.mean(runs)) if runs else 0.0
