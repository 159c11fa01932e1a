"""Rises of the rates of streams: of each stream, and of all streams together."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.arrivals import PERIOD_S, RateHistory
from controlplane.explain.observation import RECENT, ClusterObservation
from controlplane.explain.series_shifts import filled_forward, largest_shifts

# A stream rises with all others if it rises by this part of their relative rise.
_ALIKE: Final = 0.25


class StreamRise(NamedTuple):
    """The change of the rate of a stream as a node receives it, in records/s.

    `source_before`, `source_after`: of the stream itself; `time`: when it changed, None if it did
    not change by more than chance.
    """

    id: int
    name: str
    before: float
    after: float
    source_before: float
    source_after: float
    time: datetime | None


def stream_rises(
    observed: ClusterObservation, weights: Mapping[int, float], names: Mapping[int, str]
) -> list[StreamRise]:
    """Return the rates of streams before and after their largest shift, the largest rise first."""
    history = observed.rates(sorted(weights))
    if not history.rates.shape[1]:
        return []
    shifts = largest_shifts(history.rates)
    newest, streams = _newest(history), history.streams.tolist()
    sure = shifts.are_sure
    weight = np.array([weights[stream] for stream in streams])
    before = np.where(sure, shifts.before, newest)
    order = np.argsort(weight * before - weight * newest, kind="stable").tolist()
    last = len(history.starts) - 1
    columns = zip(
        (weight * before).tolist(), (weight * newest).tolist(), before.tolist(), newest.tolist(),
        np.where(sure, np.minimum(shifts.places, last), -1).tolist(), strict=True,
    )  # fmt: skip
    # By columns: a node may read ten thousand streams.
    rows = [
        StreamRise(
            stream, names.get(stream, str(stream)), here, here_now, own, own_now,
            history.starts[place] if place >= 0 else None,
        )
        for stream, (here, here_now, own, own_now, place) in zip(streams, columns, strict=True)
    ]  # fmt: skip
    return [rows[place] for place in order]


@dataclass(frozen=True)
class CommonRise:
    """The rise of the rates of all streams together, as a node receives them, in records/s.

    `time`: when their sum rose; `count`: the streams that have more records since then; `largest`,
    the id of the one that has most more. `source_before`, `source_after`: sums of their own rates.
    """

    time: datetime
    count: int
    largest: int
    before: float
    after: float
    source_before: float
    source_after: float


def common_rise(observed: ClusterObservation, weights: Mapping[int, float]) -> CommonRise | None:
    """Return the rise of the sum of streams that is more than chance, None without one.

    The rises of many streams may each be small beside their noise where that of the sum is not.
    """
    history = observed.rates(sorted(weights))
    if not history.rates.shape[1] or not history.rates.shape[0]:
        return None
    rates, streams = filled_forward(history.rates), history.streams.tolist()
    weight = np.array([weights[stream] for stream in streams])
    shifts = largest_shifts((weight @ rates)[None, :])
    place = int(shifts.places[0])
    if not shifts.is_sure(0) or shifts.after[0] <= shifts.before[0]:
        return None
    before, after = rates[:, :place].mean(axis=1), rates[:, place:].mean(axis=1)
    # Relative to the sum: what rises less is noise.
    least = _ALIKE * float(weight @ after) / max(float(weight @ before), 1.0)
    risen = after - before > np.maximum(0.0, (least - _ALIKE) * before)
    if not risen.any():
        return None
    part = np.where(risen, weight, 0.0)
    largest = streams[int(np.argmax(part * (after - before)))]
    return CommonRise(
        history.starts[min(place, len(history.starts) - 1)], int(risen.sum()), largest,
        float(part @ before), float(part @ after),
        float(before[risen].sum()), float(after[risen].sum()),
    )  # fmt: skip


def _newest(history: RateHistory) -> Floats:
    """Return the mean rate of each stream over the last `RECENT`, 0 if it is not known."""
    last = history.rates[
        :, -max(1, round(RECENT.total_seconds() / max(history.seconds, PERIOD_S))) :
    ]
    known = ~np.isnan(last)
    means: Floats = np.where(known, last, 0.0).sum(axis=1) / np.maximum(1, known.sum(axis=1))
    return means
