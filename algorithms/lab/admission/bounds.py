"""Lower bounds of the number of nodes, and the exact number for small cases.

L2: Martello and Toth, Lower Bounds and Reduction Procedures for the Bin Packing Problem, 1990; L3
applies L2 to what their reduction leaves. Wasted space and bin completion: Korf, A New Algorithm
for Optimal Bin Packing, AAAI 2002 (reference 17 of paper 001).
"""

import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.admission.packing import best_fit
from algorithms.checks import amounts
from algorithms.errors import BadProblem
from algorithms.vocabulary import Floats

# Relative to the capacity.
_ROUNDING: Final = 1e-9
_SECONDS: Final = 2.0


@dataclass(frozen=True)
class Bounds:
    """Lower bounds of the number of bins; `optimum` is None where the search was cut off."""

    l2: int
    l3: int
    wasted_space: int
    optimum: int | None


def bounds(capacity: float, items: Floats, seconds: float = _SECONDS) -> Bounds:
    """Return the bounds of these item sizes, with an exact search of at most `seconds`.

    Raises `BadProblem` for a capacity that is not positive and for an item above it.
    """
    sizes = checked_items(capacity, items)
    lower = l3(sizes)
    upper = decreasing_fit(sizes)
    optimum = upper if upper == lower else bin_completion(sizes, lower, upper, seconds)
    return Bounds(l2(sizes), lower, wasted_space(sizes), optimum)


def checked_items(capacity: float, items: object) -> Floats:
    """Return the positive sizes as shares of the capacity, the largest first."""
    if not (np.isfinite(capacity) and capacity > 0):
        raise BadProblem("capacity", f"must be positive, not {capacity!r}")
    sizes = amounts("items", items)
    too_large = np.flatnonzero(sizes > capacity * (1 + _ROUNDING))
    if len(too_large):
        place = int(too_large[0])
        raise BadProblem(f"items[{place}]", f"{sizes[place]:g} is above the capacity {capacity:g}")
    shares = np.minimum(np.sort(sizes[sizes > 0])[::-1] / capacity, 1.0)
    return np.ascontiguousarray(shares)


def l2(sizes: Floats) -> int:
    """Return the bound L2 of sizes in (0, 1], the largest first.

    The maximum over thresholds: items above 1 - threshold and those above 1/2 have a bin each, and
    what the others from the threshold on need beyond the space left in the bins of the second.
    """
    if not len(sizes):
        return 0
    best = _whole(float(sizes.sum()))
    small = sizes[sizes <= 0.5 + _ROUNDING]
    for threshold in (0.0, *np.unique(small).tolist()):
        large = sizes > 1 - threshold + _ROUNDING
        middle = ~large & (sizes > 0.5 + _ROUNDING)
        rest = ~large & ~middle & (sizes >= threshold - _ROUNDING)
        open_ = int(middle.sum())
        over = float(sizes[rest].sum()) - (open_ - float(sizes[middle].sum()))
        best = max(best, int(large.sum()) + open_ + max(0, _whole(over)))
    return best


def _whole(amount: float) -> int:
    return int(np.ceil(amount - _ROUNDING))


def l3(sizes: Floats) -> int:
    """Return the bound L3: L2 after dominance reductions, with ever smaller items left out."""
    best, filled, left = 0, 0, sizes
    while len(left):
        reduced, left = _reduce(left)
        filled += reduced
        best = max(best, filled + l2(left))
        left = left[:-1]
    return max(best, filled)


def _reduce(sizes: Floats) -> tuple[int, Floats]:
    """Return how many bins some optimal packing fills as is known, and the other items.

    Of each item, the largest first: if it fits with no other, or if the largest item that fits with
    it dominates every pair and no three fit, then that bin is part of an optimal packing.
    """
    left = sizes.tolist()
    filled, place = 0, 0
    while place < len(left):
        room = 1 - left[place] + _ROUNDING
        others = [other for other in range(len(left)) if other != place and left[other] <= room]
        if not others:
            taken: tuple[int, ...] = (place,)
        elif len(others) == 1 or left[others[-1]] + left[others[-2]] > room:
            # No two others fit together, so the largest one that fits dominates.
            taken = (place, others[0])
        elif left[others[0]] >= room - 2 * _ROUNDING:
            taken = (place, others[0])
        else:
            place += 1
            continue
        filled += 1
        left = [size for other, size in enumerate(left) if other not in taken]
        place = 0
    return filled, np.array(left)


def wasted_space(sizes: Floats) -> int:
    """Return Korf's estimated wasted space bound, which equals L2 (Korf 2003, section 3).

    Large items are matched with the smaller ones that could share their bins; what cannot be filled
    is wasted in every packing.
    """
    if not len(sizes):
        return 0
    small = sizes[::-1].tolist()
    total, waste, carried, place = float(sizes.sum()), 0.0, 0.0, 0
    for size in sizes.tolist():
        room = 1 - size
        if room >= size:
            break
        while place < len(small) and small[place] <= room + _ROUNDING:
            carried += small[place]
            place += 1
        if carried <= room:
            waste += room - carried
            carried = 0.0
        else:
            carried -= room
    return _whole(total + waste)


def decreasing_fit(sizes: Floats) -> int:
    """Return the number of bins of best-fit decreasing."""
    return best_fit(np.arange(len(sizes)), sizes[:, None], np.zeros((0, 1)), 1.0)[1]


def bin_completion(sizes: Floats, lower: int, upper: int, seconds: float) -> int | None:
    """Return the least number of bins from `lower` to `upper`, None if time runs out.

    Korf's search: the bin of the largest item is completed in all undominated ways.
    """
    search = _Search(time.monotonic() + seconds)
    for count in range(lower, upper):
        try:
            if search.fits(tuple(sizes.tolist()), count):
                return count
        except TimeoutError:
            return None
    return upper


class _Search:
    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._failed: dict[tuple[float, ...], int] = {}

    def fits(self, items: tuple[float, ...], bins: int) -> bool:
        """Return whether the items, the largest first, fit in so many bins."""
        if not items:
            return True
        if time.monotonic() > self._deadline:
            raise TimeoutError
        if self._failed.get(items, -1) >= bins or wasted_space(np.array(items)) > bins:
            return False
        for chosen in _completions(items[1:], 1 - items[0]):
            taken = set(chosen)
            left = tuple(size for place, size in enumerate(items[1:]) if place not in taken)
            if self.fits(left, bins - 1):
                return True
        self._failed[items] = max(self._failed.get(items, -1), bins)
        return False


def _completions(items: tuple[float, ...], room: float) -> list[tuple[int, ...]]:
    """Return maximal sets of items that fit in a room, the fullest first.

    Of equal items only the first ones are taken.
    """
    completions: list[tuple[float, tuple[int, ...]]] = []

    def extend(place: int, chosen: tuple[int, ...], left: float) -> None:
        maximal = True
        last = None
        for other in range(place, len(items)):
            size = items[other]
            if size <= left + _ROUNDING and size != last:
                maximal = False
                last = size
                extend(other + 1, (*chosen, other), left - size)
        if maximal and not _could_add(items, chosen, left):
            completions.append((left, chosen))

    extend(0, (), room)
    completions.sort(key=lambda pair: (pair[0], len(pair[1])))
    return [chosen for _, chosen in completions]


def _could_add(items: tuple[float, ...], chosen: tuple[int, ...], left: float) -> bool:
    """Return whether an item that was passed over still fits."""
    taken = set(chosen)
    return any(size <= left + _ROUNDING for place, size in enumerate(items) if place not in taken)
