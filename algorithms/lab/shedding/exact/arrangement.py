"""All cuts of networks without splits on two resources: vertices of an arrangement of lines.

The dual of section 3 of paper 003 minimises p . capacity + sum_i r_i max(0, value_i - load_i . p)
over prices p >= 0 in two dimensions. Its slope changes only on the lines load_i . p = value_i, so a
vertex of their arrangement with the axes is an optimum for any rates. A vertex is an optimum for
some rates if and only if the capacities are within the cone of the loads of the inputs on its lines
and of those with a profit, and of the axes on which it stands (room left there). If they are
strictly within it, it is the only optimum; on the border of the cone, as where an input loads both
resources in proportion to their capacities, optima are the whole way between two vertices.
"""

from typing import Final, NamedTuple

import numpy as np

from algorithms.lab.shedding.exact.equations import DROPPED, FULL, PARTIAL, Equations
from algorithms.lab.shedding.exact.regions import Basis
from algorithms.vocabulary import Flags, Floats, Ints

# Numbers in the largest array, of vertices x inputs.
MAX_NUMBERS: Final = 4_000_000
_TOLERANCE: Final = 1e-12


class Cuts(NamedTuple):
    """Linear functions `constant` float64[n] + `slope` float64[n, i] @ rates, the least is V.

    `prices` float64[n, r] of the rows.
    """

    constant: Floats
    slope: Floats
    prices: Floats

    def values(self, points: Floats) -> Floats:
        """Return V at points float64[p, i]."""
        return np.asarray(np.min(points @ self.slope.T + self.constant, axis=1))


class Arrangement(NamedTuple):
    """Cuts with the lines through their vertices: `lines` int64[n, 2].

    A line is the place of an input, or the axis on which a row's price is zero: -2 of the first
    row, -1 of the second.
    """

    cuts: Cuts
    lines: Ints

    def basis(self, number: int) -> Basis:
        """Return the basis of a cut; states of inputs on several lines are arbitrary."""
        lines = self.lines[number]
        partial = lines[lines >= 0]
        binding = np.array([row for row in (0, 1) if row - 2 not in lines], np.int64)
        states = np.where(self.cuts.slope[number] > 0, FULL, DROPPED).astype(np.int32)
        states[partial] = PARTIAL
        return Basis(states, partial, binding)


def can_arrange(eq: Equations) -> bool:
    """Return whether a network has two rows, no split edges and no floors, and is small enough."""
    count = eq.inputs
    is_plain = len(eq.values) == count and len(eq.capacity) == 2 and not len(eq.slope)  # noqa: PLR2004
    return is_plain and (count + 2) * (count + 1) // 2 * count <= MAX_NUMBERS


def arranged(eq: Equations) -> Arrangement:
    """Return all cuts of a network for which `can_arrange` holds."""
    loads = np.zeros((eq.inputs, 2))
    places = np.repeat(np.arange(eq.inputs), np.diff(eq.load_start))
    # In units of the capacities: both are 1, and prices are the value of a whole resource.
    loads[places, eq.load_row] = eq.load / eq.capacity[eq.load_row]
    # The axes are first, so that they name a vertex on which other lines are, too.
    normals = np.concatenate([np.eye(2), loads])
    levels = np.concatenate([[0.0, 0.0], eq.values])
    first, second = np.triu_indices(len(normals), 1)
    points, crosses = _crossings(normals, levels, first, second)
    used = crosses & (points >= 0).all(axis=1)
    points, lines = points[used], np.stack([first[used], second[used]], axis=1)
    profit = eq.values - points @ loads.T
    size = _TOLERANCE * (eq.values + points @ loads.T)
    profit[np.abs(profit) <= size] = 0.0
    best = _is_optimum(normals, profit > 0, lines)
    points, lines, profit = points[best], lines[best], profit[best]
    _, kept = np.unique(rounded(points), axis=0, return_index=True)
    points, lines, slope = points[kept], lines[kept], np.maximum(profit[kept], 0.0)
    functions = rounded(np.column_stack([points.sum(axis=1), slope]))
    _, kept = np.unique(functions, axis=0, return_index=True)
    points, lines, slope = points[kept], lines[kept], slope[kept]
    cuts = Cuts(points.sum(axis=1), slope, points / eq.capacity)
    return Arrangement(cuts, lines - 2)


def rounded(numbers: Floats) -> Floats:
    """Return numbers with about 11 significant digits, so that equal ones compare equal."""
    mantissa, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.round(mantissa, 11), exponent))


def _crossings(normals: Floats, levels: Floats, first: Ints, second: Ints) -> tuple[Floats, Flags]:
    """Return the points float64[n, 2] in which lines cross, and whether they do."""
    a, b = normals[first], normals[second]
    determinant = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    size = np.abs(a[:, 0] * b[:, 1]) + np.abs(a[:, 1] * b[:, 0])
    crosses = np.abs(determinant) > _TOLERANCE * size
    safe = np.where(crosses, determinant, 1.0)
    x = (levels[first] * b[:, 1] - levels[second] * a[:, 1]) / safe
    y = (levels[second] * a[:, 0] - levels[first] * b[:, 0]) / safe
    points = np.stack([x, y], axis=1)
    # Rounding must not move a point off its axis.
    tiny = _TOLERANCE * np.abs(points).max(axis=1, keepdims=True)
    points[np.abs(points) <= tiny] = 0.0
    return points, crosses


def _is_optimum(normals: Floats, gains: Flags, lines: Ints) -> Flags:
    """Return whether the capacities, (1, 1), are in the cone of loads of each vertex."""
    total = normals.sum(axis=1)
    # The direction of a load, from 0 to 1; those without a load have none.
    direction = np.divide(normals[:, 1], total, out=np.full(len(total), np.nan), where=total > 0)
    own = direction[lines]
    inputs = direction[2:]
    has = gains & np.isfinite(inputs)
    low = np.fmin(own.min(axis=1), np.where(has, inputs, np.inf).min(axis=1, initial=np.inf))
    high = np.fmax(own.max(axis=1), np.where(has, inputs, -np.inf).max(axis=1, initial=-np.inf))
    half = 0.5
    return np.asarray((low <= half + _TOLERANCE) & (high >= half - _TOLERANCE))
