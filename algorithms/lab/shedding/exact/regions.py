"""Regions of rates with one optimal basis: there the optimal flows are affine in the rates.

A basis has a state for each drop location (dropped, full, partial) and the rows that bind, as many
as there are partial locations. Its prices make the profit of every partial location zero. Rates are
in its region if the partial flows with which the rows bind are between 0 and what arrives, and all
other rows have room; then flows and prices prove each other optimal. The prices, and with them the
cut, do not depend on the rates: only the region does.
"""

from typing import Final, NamedTuple

import numpy as np

from algorithms.compiled import compiled, inlined
from algorithms.lab.shedding.exact.equations import (
    DROPPED,
    FULL,
    Equations,
    arriving_at,
    capacity_of,
    reduced,
    unshed_flows,
)
from algorithms.vocabulary import Floats, Ints, SmallInts

# Relative to capacities, rates and values.
TOLERANCE: Final = 1e-9
# Memory of the regions of a part of a network, and how many it has at most.
MAX_BYTES: Final = 32_000_000
MAX_REGIONS: Final = 4_096
# Locations x rows up to which bases are kept; larger parts solve a program per plan.
MAX_BASIS: Final = 2_000_000
_FIRST: Final = 16


class Basis(NamedTuple):
    """States int32[d] of the locations, the partial ones and the binding rows, int64[k] each."""

    states: SmallInts
    partial: Ints
    binding: Ints


class Region(NamedTuple):
    """A basis with its prices float64[r], cut `constant` + `slope` . rates, and partial flows.

    The partial flows are `partial_constant` + `partial_slope` @ rates, float64[k], float64[k, i].
    """

    basis: Basis
    prices: Floats
    constant: float
    slope: Floats
    partial_constant: Floats
    partial_slope: Floats


def region_of(eq: Equations, basis: Basis) -> Region | None:
    """Return the region of a basis, or None if its prices do not prove its plans optimal.

    States of locations that are not partial follow from the prices if their profit is not zero.
    """
    states, partial, binding = basis
    if len(partial) != len(binding):
        return None
    value, load = reduced(eq, states, binding)
    # One row of `own` per partial location, one column per binding row.
    own = load[partial]
    try:
        inverse = np.linalg.inv(own)
    except np.linalg.LinAlgError:
        return None
    prices = np.zeros(len(eq.capacity))
    prices[binding] = inverse @ value[partial]
    profit = value - load @ prices[binding]
    size = TOLERANCE * (np.abs(value) + np.abs(load) @ np.abs(prices[binding]) + 1e-300)
    largest = float(np.max(np.abs(prices) * np.abs(eq.capacity), initial=0.0))
    wrong = (
        ((states == FULL) & (profit < -size))
        | ((states == DROPPED) & (profit > size))
        | ~np.isfinite(profit)
    )
    if wrong.any() or bool(np.any(prices * np.abs(eq.capacity) < -TOLERANCE * largest)):
        return None
    prices = np.maximum(prices, 0.0)
    full = states[: eq.inputs] == FULL
    slope = np.where(full, np.maximum(profit[: eq.inputs], 0.0), 0.0)
    need = -np.where(full[:, None], load[: eq.inputs], 0.0).T
    if len(eq.slope):
        slope = slope + prices @ eq.slope
        need = need + eq.slope[binding]
    back = inverse.T
    return Region(basis, prices, float(prices @ eq.capacity), slope,
                  np.asarray(back @ eq.capacity[binding]), np.asarray(back @ need))  # fmt: skip


class Table(NamedTuple):
    """Regions as arrays for compiled code; `n` places, of which `count` is the first free one.

    `used` int64[n]: number of the look-up that used each region last.
    """

    constant: Floats
    slope: Floats
    prices: Floats
    states: SmallInts
    size: Ints
    partial: Ints
    binding: Ints
    partial_constant: Floats
    partial_slope: Floats
    used: Ints


def can_keep(eq: Equations) -> bool:
    """Return whether a network is small enough for regions; else there are none."""
    return len(eq.capacity) * len(eq.values) <= MAX_BASIS


class Regions:
    """The regions of a part of a network that were used last, at most `most`."""

    def __init__(self, eq: Equations) -> None:
        places, rows, inputs = len(eq.values), len(eq.capacity), eq.inputs
        self._rows, self._width = rows, min(places, rows) if can_keep(eq) else 0
        each = 8 * (inputs + rows + self._width * (3 + inputs)) + 4 * places + 32
        self.most = max(1, min(MAX_REGIONS, MAX_BYTES // each))
        self.count = 0
        self.clock = np.zeros(1, np.int64)
        self._places: dict[bytes, int] = {}
        self.table = self._empty(min(_FIRST, self.most), inputs, places)

    def _empty(self, count: int, inputs: int, places: int) -> Table:
        width = self._width
        return Table(
            np.full(count, np.inf), np.zeros((count, inputs)), np.zeros((count, self._rows)),
            np.zeros((count, places), np.int32),
            np.zeros(count, np.int64), np.zeros((count, width), np.int64),
            np.zeros((count, width), np.int64), np.zeros((count, width)),
            np.zeros((count, width, inputs)), np.zeros(count, np.int64),
        )  # fmt: skip

    def add(self, region: Region) -> int:
        """Store a region, in the place of the one that was used longest ago if all are taken.

        Return its place.
        """
        key = _key(region.basis)
        place = self._places.get(key)
        if place is None:
            place = self._free_place()
            self._places[key] = place
            self._write(place, region)
        self.clock[0] += 1
        self.table.used[place] = self.clock[0]
        return place

    def _free_place(self) -> int:
        table = self.table
        if self.count == self.most:
            place = int(np.argmin(table.used))
            del self._places[_key(self.basis(place))]
            return place
        if self.count == len(table.used):
            self.table = self._empty(min(2 * self.count, self.most), *self._shape())
            for name, array in table._asdict().items():
                getattr(self.table, name)[: self.count] = array
        self.count += 1
        return self.count - 1

    def _write(self, place: int, region: Region) -> None:
        table, size = self.table, len(region.basis.partial)
        table.constant[place], table.slope[place] = region.constant, region.slope
        table.prices[place] = region.prices
        table.states[place], table.size[place] = region.basis.states, size
        table.partial[place, :size] = region.basis.partial
        table.binding[place, :size] = region.basis.binding
        table.partial_constant[place, :size] = region.partial_constant
        table.partial_slope[place, :size] = region.partial_slope

    def basis(self, place: int) -> Basis:
        """Return the basis of the region in a place."""
        table, size = self.table, int(self.table.size[place])
        partial, binding = table.partial[place, :size], table.binding[place, :size]
        return Basis(table.states[place].copy(), partial.copy(), binding.copy())

    def bases(self) -> list[Basis]:
        """Return the bases of all regions, first those that were used longest ago."""
        order = np.argsort(self.table.used[: self.count], kind="stable")
        return [self.basis(place) for place in order.tolist()]

    def _shape(self) -> tuple[int, int]:
        return self.table.slope.shape[1], self.table.states.shape[1]


def _key(basis: Basis) -> bytes:
    return b"/".join(item.tobytes() for item in basis)


@compiled
def flows_in_region(eq: Equations, table: Table, place: int, rates: Floats, flows: Floats) -> bool:
    """Write the flows float64[d] of a region at rates; return whether the rates are in it."""
    states = table.states[place]
    scale = _partial_flows(eq, table, place, rates, flows)
    if scale < 0:
        return False
    for position in range(len(eq.order)):
        location = eq.order[position]
        arriving = arriving_at(eq, location, rates, flows)
        if states[location] == FULL:
            flows[location] = arriving
        elif states[location] == DROPPED:
            flows[location] = 0.0
        else:
            flow = flows[location]
            slack = TOLERANCE * (arriving + scale)
            if flow < -slack or flow > arriving + slack:
                return False
            flows[location] = min(max(flow, 0.0), arriving)
    return has_room(eq, rates, flows)


@inlined
def _partial_flows(eq: Equations, table: Table, place: int, rates: Floats, flows: Floats) -> float:
    """Write the partial flows of a region; return their scale, or -1 if an input has too few.

    Most regions that do not have the rates are rejected here, before any other flow is known.
    """
    scale = 0.0
    for k in range(table.size[place]):
        total = table.partial_constant[place, k]
        scale = max(scale, abs(total))
        for i in range(len(rates)):
            total += table.partial_slope[place, k, i] * rates[i]
        location = table.partial[place, k]
        if location < eq.inputs:
            slack = TOLERANCE * (rates[location] + scale)
            if total < -slack or total > rates[location] + slack:
                return -1.0
        flows[location] = total
    return scale


@compiled
def has_room(eq: Equations, rates: Floats, flows: Floats) -> bool:
    """Return whether flows float64[d] load no row above its capacity."""
    for row in range(len(eq.capacity)):
        total = 0.0
        size = 0.0
        for k in range(eq.row_start[row], eq.row_start[row + 1]):
            load = eq.row_load[k] * flows[eq.row[k]]
            total += load
            size += abs(load)
        limit = capacity_of(eq, row, rates)
        if total > limit + TOLERANCE * max(abs(limit), size):
            return False
    return True


@compiled
def look_up(
    eq: Equations, table: Table, count: int, clock: Ints, rates: Floats, flows: Floats
) -> int:
    """Write the optimal flows float64[d] at rates float64[i]; return the region, -1 if none fits.

    Optimal bases have the least cut of all; so those regions are tried of which the cut is least.
    """
    bounds = np.empty(count)
    least = np.inf
    for place in range(count):
        bound = table.constant[place]
        for i in range(len(rates)):
            bound += table.slope[place, i] * rates[i]
        bounds[place] = bound
        least = min(least, bound)
    limit = least + TOLERANCE * abs(least)
    for place in range(count):
        if bounds[place] <= limit and flows_in_region(eq, table, place, rates, flows):
            clock[0] += 1
            table.used[place] = clock[0]
            return place
    return -1


@compiled
def plan_flows(
    eq: Equations, table: Table, count: int, clock: Ints, rates: Floats, flows: Floats
) -> bool:
    """Write the optimal flows float64[d] at rates float64[i]; return whether they are known."""
    return unshed_flows(eq, rates, flows) or look_up(eq, table, count, clock, rates, flows) >= 0


@compiled
def plan_all(
    eq: Equations, table: Table, count: int, clock: Ints, points: Floats, flows: Floats, first: int
) -> int:
    """Write the optimal flows float64[p, d] of points float64[p, i], from `first` on.

    Return the first point whose flows are not known, the number of points if there is none.
    """
    for point in range(first, len(points)):
        if not plan_flows(eq, table, count, clock, points[point], flows[point]):
            return point
    return len(points)
