"""Feasible inputs: the rung that two streams need at each pair of rates, the others as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Final

import numpy as np

from algorithms.vocabulary import Floats
from controlplane.models import Cluster
from controlplane.planners.shedding.inputs import SheddingInput
from controlplane.telemetry.arrivals import rates_between
from controlplane.wire.routing.compiled_ladder import CompiledLadder, compiled_ladder, rates_of
from controlplane.wire.routing.ladder import Ladder
from controlplane.wire.routing.ladder_position import least_position

CELLS: Final = (20, 14)
# The largest rates over those at which nothing is dropped if both streams grow together.
_BEYOND: Final = 1.5
# Points of the border, and of the rates of the last day.
_BORDER: Final = 81
_TRACK: Final = 200
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class LargestInput:
    """The rates of both streams when their input factor was the largest in the last day."""

    time: datetime
    x: float
    y: float
    factor: float


@dataclass(frozen=True)
class FeasibleInputs:
    """Pairs of rates of the two streams with the largest rates, `x` and `y`, in records/s.

    `rungs`: the rung that is needed in each cell, by row of `y_rates`; rates are those of the
    middles of cells. `border`: pairs of rates up to which nothing is dropped. `track`: the pairs of
    the last day, the oldest first; `others`: the number of other streams. `largest`: None if no
    rates of the last day are stored.
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
    largest: LargestInput | None = None


@dataclass(frozen=True)
class _PairLoads:
    """The loads of resources without drops, linear in both rates; float64[resources] each."""

    fixed: Floats
    by_x: Floats
    by_y: Floats

    @classmethod
    def of(
        cls, ladder: CompiledLadder, rates: Mapping[int, float], pair: tuple[int, int]
    ) -> "_PairLoads":
        """Return the loads of a ladder with the other streams as they are."""
        others = {**rates, pair[0]: 0.0, pair[1]: 0.0}
        fixed = _loads(ladder, others)
        by_x, by_y = (_loads(ladder, {**others, stream: 1.0}) - fixed for stream in pair)
        return cls(fixed, by_x, by_y)

    def largest(self, x: Floats, y: Floats) -> Floats:
        """Return the largest load of a resource at each pair of rates, float64[pairs]."""
        loads = self.fixed[:, None] + np.outer(self.by_x, x) + np.outer(self.by_y, y)
        return np.asarray(loads.max(axis=0, initial=0.0))


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
    pair_loads = _PairLoads.of(compiled, rates, pair)
    ends = _ends(pair_loads, ladder.limit, now)
    axes = [
        [end * (cell + 0.5) / count for cell in range(count)]
        for end, count in zip(ends, CELLS, strict=True)
    ]
    rungs = [[_rung(compiled, {**rates, pair[0]: x, pair[1]: y}) for x in axes[0]] for y in axes[1]]
    border = _border(pair_loads, ladder.limit, ends)
    track, largest_input = _last_day(cluster, pair, pair_loads, ladder.limit)
    return FeasibleInputs(
        largest[0].name, largest[1].name, axes[0], axes[1], rungs, border, now, track,
        len(given.streams) - 2, largest_input,
    )  # fmt: skip


def _rung(ladder: CompiledLadder, rates: Mapping[int, float]) -> int:
    loads = ladder.loads(rates_of(ladder.streams, rates))
    none = np.zeros(len(ladder.resources))
    return ceil(least_position(loads, none, ladder.ladder.limit) - 1e-9)


def _loads(ladder: CompiledLadder, rates: Mapping[int, float]) -> Floats:
    """Return the load of each resource without drops, float64[resources]."""
    return np.asarray(ladder.loads(rates_of(ladder.streams, rates))[:, 0])


def _ends(loads: _PairLoads, limit: float, now: tuple[float, float]) -> tuple[float, float]:
    """Return the largest rates of the axes: beyond what either stream alone may have."""
    ends = []
    for slope, rate in zip((loads.by_x, loads.by_y), now, strict=True):
        used = slope > 0
        room = np.maximum(limit - loads.fixed[used], 0.0) / slope[used]
        most = float(room.min()) if used.any() else 0.0
        ends.append(max(_BEYOND * most, 1.5 * rate, 1.0))
    return ends[0], ends[1]


def _border(
    loads: _PairLoads, limit: float, ends: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return the border of the inputs without drops."""
    border = []
    used = loads.by_y > 0
    for x in np.linspace(0, ends[0], _BORDER).tolist():
        room = limit - loads.fixed - loads.by_x * x
        if (room < 0).any():
            break
        y = float((room[used] / loads.by_y[used]).min()) if used.any() else ends[1]
        border.append((x, min(y, ends[1])))
    return border


def _last_day(
    cluster: Cluster, pair: tuple[int, int], loads: _PairLoads, limit: float
) -> tuple[list[tuple[float, float]], LargestInput | None]:
    """Return the pairs of the last day, oldest first, and the one with the largest factor."""
    stop = datetime.now(UTC)
    recorded = rates_between(cluster, stop - _DAY, stop, sorted(pair))
    x, y = recorded.of(pair[0]), recorded.of(pair[1])
    known = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
    if not known.size:
        return [], None
    factors = loads.largest(x[known], y[known]) / limit
    top = int(factors.argmax())
    place = int(known[top])
    largest = LargestInput(
        recorded.starts[place], float(x[place]), float(y[place]), float(factors[top])
    )
    shown = known[:: max(1, known.size // _TRACK)]
    return list(zip(x[shown].tolist(), y[shown].tolist(), strict=True)), largest
