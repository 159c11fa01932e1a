"""Samples of the rates of each stream, and the rate combinations among them (section 6.2.1).

From a sample x the next sample down is (1 - spread) x - step, so 0 is a sample, too. Rounding rates
down to samples loses at most the part `spread` of each, and `step` records of each stream.
The samples are those from 0 up, so a change of the largest feasible rate leaves them as they are;
only that rate itself is a sample in addition.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import BadProblem, TooLarge
from algorithms.vocabulary import Floats, Ints

MAX_ROWS: Final = 500_000
MAX_SAMPLES: Final = 5_000
# Streams whose numbers of samples an error lists.
MAX_LISTED: Final = 4
MAX_VISITS: Final = 20_000_000
# Relative rounding up to which a load counts as within a capacity.
ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Precision:
    """How dense samples are. `loss`: the value that the steps of one stream may lose, at most."""

    spread: float
    loss: float

    def step(self, value: float) -> float:
        """Return the step of a stream with this value per record, a power of the 4th root of 2.

        So small changes of a network leave most samples as they are.
        """
        return float(2.0 ** (math.floor(4 * math.log2(self.loss / value)) / 4))


def samples(top: float, precision: Precision, value: float, where: str) -> Floats:
    """Return the samples of a stream, ascending from 0 to `top`, in records per unit of time.

    `value`: results per record that a lower rate can lose. Raises `BadProblem` if no rate is the
    largest, and `TooLarge` if there are more than `MAX_SAMPLES`.
    """
    if not math.isfinite(top):
        raise BadProblem(where, "has no largest feasible rate, as no resource limits it")
    if top <= 0 or value <= 0:
        return np.zeros(1)
    spread, step = precision.spread, precision.step(value)
    growth = -math.log1p(-spread)
    count = math.log1p(top * spread / step) / growth
    if not count < MAX_SAMPLES:
        raise TooLarge(f"{where}: {count:,.0f} samples, at most {MAX_SAMPLES:,}; raise epsilon")
    lattice = step * np.expm1(growth * np.arange(math.ceil(count) + 1)) / spread
    return np.append(lattice[lattice < top * (1 - ROUNDING)], top)


def grid(levels: list[Floats], limits: Floats, *, outer: bool) -> Ints:
    """Return the combinations of samples within all limits, as numbers of samples, int64[n, e].

    `limits` float64[r, e]: parts of resources per record. `outer`: leave out a combination if its
    next samples up, in every stream with several samples, are within the limits. Raises `TooLarge`
    after `MAX_ROWS` combinations.
    """
    counts = np.array([len(level) for level in levels], np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    flat = np.concatenate(levels)
    empty = np.zeros((0, len(levels)), np.int64)
    size = _scan(flat, starts, limits, outer, empty, MAX_ROWS, MAX_VISITS)
    if size < 0:
        shape = " x ".join(f"{count:,}" for count in counts)
        if len(counts) > MAX_LISTED:
            shape = f"{len(counts):,} streams with up to {counts.max():,}"
        raise TooLarge(f"a table of {shape} samples has more than {MAX_ROWS:,} rows; raise "
                       "epsilon, or use lp or exact, whatever the number of inputs")  # fmt: skip
    out = np.empty((size, len(levels)), np.int64)
    _scan(flat, starts, limits, outer, out, MAX_ROWS, MAX_VISITS)
    return out


@compiled
def _scan(
    flat: Floats,
    starts: Ints,
    limits: Floats,
    outer: bool,
    out: Ints,
    most_rows: int,
    most_visits: int,
) -> int:
    """Count the combinations, or write them to `out`; -1 if there are too many."""
    dims = len(starts) - 1
    place = np.full(dims, -1, np.int64)
    # Loads of the chosen samples, and of the samples next above them, of the first streams.
    loads, above = np.zeros((2, dims + 1, limits.shape[0]))
    has_next = np.zeros(dims + 1, np.bool_)
    has_next[0] = len(flat) > dims
    count, visits, dim = 0, 0, 0
    while dim >= 0:
        place[dim] += 1
        visits += 1
        current, stop = starts[dim] + place[dim], starts[dim + 1]
        if current == stop or not _fits(limits, dim, flat[current], loads):
            dim -= 1
            continue
        # A stream with one sample has no next one, and needs none.
        following = current if stop - starts[dim] == 1 else current + 1
        has_next[dim + 1] = (
            has_next[dim] and following < stop and _fits(limits, dim, flat[following], above)
        )
        if dim + 1 < dims:
            dim += 1
            place[dim] = -1
        elif not (outer and has_next[dims]):
            if len(out) > 0:
                out[count] = place
            count += 1
        if count > most_rows or visits > most_visits:
            return -1
    return count


@compiled
def _fits(limits: Floats, dim: int, rate: float, loads: Floats) -> bool:
    """Add the load of a stream to that of the ones before; return whether it is within limits."""
    fits = True
    for row in range(limits.shape[0]):
        loads[dim + 1, row] = loads[dim, row] + limits[row, dim] * rate
        if loads[dim + 1, row] > 1.0 + 1e-12:
            fits = False
    return fits
