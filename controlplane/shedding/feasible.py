"""Feasible inputs: the rung that two streams need at each pair of rates, the others as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.arrivals import rates_between
from controlplane.models import Cluster
from controlplane.plans.shedding_input import SheddingInput
from controlplane.wire.routing.compiled_ladder import CompiledLadder, compiled_ladder, rates_of
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.ladder_position import least_position

CELLS: Final = (20, 14)
# The largest rates over those at which nothing is dropped if both streams grow together.
_BEYOND: Final = 2.0
# Points of the border, and of the rates of the last day.
_BORDER: Final = 81
_TRACK: Final = 200
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class FeasibleInputs:
    """Pairs of rates of the two streams with the largest rates, `x` and `y`, in records/s.

    `rungs`: the rung that is needed in each cell, by row of `y_rates`; rates are those of the
    middles of cells. `border`: pairs of rates up to which nothing is dropped. `track`: the pairs of
    the last day, the oldest first; `others`: the number of other streams.
    """

    x: str
    y: str
    x_rates: Sequence[float]
    y_rates: Sequence[float]
    rungs: Sequence[Sequence[int]]
    border: Sequence[tuple[float, float]]
    now: tuple[float, float]
    track: Sequence[tuple[float, float]]
    others: int


def feasible_inputs(
    cluster: Cluster, ladder: Ladder, given: SheddingInput
) -> FeasibleInputs | None:
    """Return the feasible inputs of a cluster, None if its queries read fewer than two streams."""
    rates = given.rates
    largest = sorted(given.streams, key=lambda stream: (-(stream.rate or 0.0), stream.name))[:2]
    if len(largest) < 2:  # noqa: PLR2004 - a pair
        return None
    pair = (largest[0].id, largest[1].id)
    compiled = compiled_ladder(ladder)
    now = (rates[pair[0]], rates[pair[1]])
    ends = _ends(compiled, rates, pair)
    axes = [
        [end * (cell + 0.5) / count for cell in range(count)]
        for end, count in zip(ends, CELLS, strict=True)
    ]
    rungs = [[_rung(compiled, {**rates, pair[0]: x, pair[1]: y}) for x in axes[0]] for y in axes[1]]
    border = _border(compiled, rates, pair, ends)
    track = _track(cluster, pair)
    return FeasibleInputs(
        largest[0].name, largest[1].name, axes[0], axes[1], rungs, border, now, track,
        len(given.streams) - 2,
    )  # fmt: skip


def _rung(ladder: CompiledLadder, rates: Mapping[int, float]) -> int:
    loads = ladder.loads(rates_of(ladder.streams, rates))
    none = np.zeros(len(ladder.resources))
    return ceil(least_position(loads, none, ladder.ladder.limit) - 1e-9)


def _loads(ladder: CompiledLadder, rates: Mapping[int, float]) -> Floats:
    """Return the load of each resource without drops, float64[resources]."""
    return np.asarray(ladder.loads(rates_of(ladder.streams, rates))[:, 0])


def _ends(
    ladder: CompiledLadder, rates: Mapping[int, float], pair: tuple[int, int]
) -> tuple[float, float]:
    """Return the largest rates of the axes: beyond what either stream alone may have."""
    others = {**rates, pair[0]: 0.0, pair[1]: 0.0}
    fixed = _loads(ladder, others)
    ends = []
    for stream in pair:
        slope = _loads(ladder, {**others, stream: 1.0}) - fixed
        used = slope > 0
        room = np.maximum(ladder.ladder.limit - fixed[used], 0.0) / slope[used]
        most = float(room.min()) if used.any() else 0.0
        ends.append(max(_BEYOND * most, 1.5 * rates[stream], 1.0))
    return ends[0], ends[1]


def _border(
    ladder: CompiledLadder,
    rates: Mapping[int, float],
    pair: tuple[int, int],
    ends: tuple[float, float],
) -> list[tuple[float, float]]:
    """Return the border of the inputs without drops: loads are linear in both rates."""
    others = {**rates, pair[0]: 0.0, pair[1]: 0.0}
    fixed = _loads(ladder, others)
    by_x = _loads(ladder, {**others, pair[0]: 1.0}) - fixed
    by_y = _loads(ladder, {**others, pair[1]: 1.0}) - fixed
    border = []
    for x in np.linspace(0, ends[0], _BORDER).tolist():
        room = ladder.ladder.limit - fixed - by_x * x
        if (room < 0).any():
            break
        used = by_y > 0
        y = float((room[used] / by_y[used]).min()) if used.any() else ends[1]
        border.append((x, min(y, ends[1])))
    return border


def _track(cluster: Cluster, pair: tuple[int, int]) -> list[tuple[float, float]]:
    stop = datetime.now(UTC)
    recorded = rates_between(cluster, stop - _DAY, stop, sorted(pair))
    if not recorded.rates.shape[1]:
        return []
    step = max(1, recorded.rates.shape[1] // _TRACK)
    columns = [recorded.of(stream)[::step].tolist() for stream in pair]
    return [(x, y) for x, y in zip(*columns, strict=True) if x == x and y == y]  # noqa: PLR0124 - NaN
