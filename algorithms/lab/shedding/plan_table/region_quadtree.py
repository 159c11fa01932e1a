"""The region quadtree: an index of boxes that divide a space of rates (paper 003, figure 5)."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from algorithms.errors import TooLarge
from algorithms.vocabulary import Floats

# A division makes 2 ** dimensions boxes.
MAX_DIMENSIONS: Final = 12
# Corners are whole multiples of 2 ** -MAX_DEPTH, which floats hold exactly.
MAX_DEPTH: Final = 50

# A place in the space: of each dimension, the part of its bound.
Corner = tuple[float, ...]


class RegionQuadtree:
    """Boxes of the space [0, bounds], of which the divided ones have 2 ** m equal parts.

    Box 0 is the whole space. A box contains the points from its bottom corner to before its top
    corner; at the bounds, the top as well. So each point is in exactly one box that is not divided.
    """

    def __init__(self, bounds: Floats) -> None:
        """Create the undivided space; `bounds`: float64[m], above 0. Raises `TooLarge`."""
        if len(bounds) > MAX_DIMENSIONS:
            raise TooLarge(
                f"a rate space of {len(bounds):,} inputs has too many boxes: each division makes "
                f"2^{len(bounds)}; a table of plans has at most {MAX_DIMENSIONS} inputs with rates "
                "and results (use exact, or divide the network into independent parts)"
            )
        self.bounds = bounds
        self._limits: list[float] = bounds.tolist()
        self._bottoms: list[Corner] = [(0.0,) * len(bounds)]
        self._depths: list[int] = [0]
        self._first_child: list[int] = [-1]

    def __len__(self) -> int:
        """Return the number of boxes, with the divided ones."""
        return len(self._bottoms)

    def bottom(self, box: int) -> Corner:
        """Return the corner of a box with the least rates."""
        return self._bottoms[box]

    def top(self, box: int) -> Corner:
        """Return the corner of a box with the greatest rates."""
        size = 0.5 ** self._depths[box]
        return tuple(low + size for low in self._bottoms[box])

    def rates(self, corner: Corner) -> Floats:
        """Return the rates of a corner, float64[m]."""
        return self.bounds * corner

    def is_divided(self, box: int) -> bool:
        """Return whether a box has parts."""
        return self._first_child[box] >= 0

    def leaves(self) -> Iterator[int]:
        """Yield the boxes that are not divided: they are disjoint and cover the space."""
        return (box for box, child in enumerate(self._first_child) if child < 0)

    def divide(self, box: int) -> range:
        """Divide a box in the middle of every dimension and return its parts.

        Bit k of the number of a part is set if it has the greater rates of dimension k. Raises
        `TooLarge` if the parts are too small.
        """
        depth = self._depths[box] + 1
        if depth > MAX_DEPTH:
            raise TooLarge(
                f"boxes of 2^-{MAX_DEPTH} of the bounds still have a larger error; raise epsilon"
            )
        dimensions, first, size = len(self._limits), len(self), 0.5**depth
        bottom = self._bottoms[box]
        for part in range(1 << dimensions):
            steps = ((part >> k & 1) * size for k in range(dimensions))
            self._bottoms.append(tuple(map(float.__add__, bottom, steps)))
        self._depths.extend([depth] * (1 << dimensions))
        self._first_child.extend([-1] * (1 << dimensions))
        self._first_child[box] = first
        return range(first, len(self))

    def leaf_at(self, rates: Sequence[float]) -> int:
        """Return the box that contains rates within the bounds and is not divided."""
        box, size = 0, 1.0
        while (first := self._first_child[box]) >= 0:
            size /= 2
            part = 0
            for k, low in enumerate(self._bottoms[box]):
                # The same product as in `rates`, so that both agree on the side of a border.
                if rates[k] >= self._limits[k] * (low + size):
                    part |= 1 << k
            box = first + part
        return box

    def intervals(self, boxes: Sequence[int]) -> tuple[Floats, Floats]:
        """Return rates float64[boxes, m] from which on and before which points are in boxes."""
        count = len(self._limits)
        low = np.array([self._bottoms[box] for box in boxes], np.float64).reshape(len(boxes), count)
        high = np.array([self.top(box) for box in boxes], np.float64).reshape(len(boxes), count)
        stops = np.where(high >= 1.0, np.nextafter(self.bounds, np.inf), high * self.bounds)
        return low * self.bounds, stops
