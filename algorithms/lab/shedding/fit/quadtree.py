"""A point quadtree over the rows of a table (section 6.4).

Rows are inserted from the best score down, each as the point that divides its region. The rates
that no row with a better score is below are the region that the paper gives to a row; so the
best-scored row below the rates is what the division into disjoint regions finds.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from algorithms.compiled import compiled
from algorithms.errors import TooLarge
from algorithms.lab.shedding.fit.table import Table
from algorithms.vocabulary import Flags, Floats, Ints

MAX_STREAMS: Final = 62


@dataclass(frozen=True, eq=False)
class PointQuadtree:
    """Points float64[n, e], from the best score down; links of children, int64[n].

    `codes`: in which region of its parent a point is; bit i is set if its rate of stream i is at
    least that of the parent. Children of a point are a linked list, from the best score down.
    """

    points: Floats
    rows: Ints
    codes: Ints
    children: Ints
    siblings: Ints

    @classmethod
    def of(cls, table: Table, rows: Flags | None = None) -> "PointQuadtree":
        """Return the index of a table, or of some rows; of at most `MAX_STREAMS` streams."""
        streams = table.rates.shape[1]
        if streams > MAX_STREAMS:
            raise TooLarge(f"{streams:,} inputs; an index has at most {MAX_STREAMS}")
        order = np.argsort(-table.scores, kind="stable")
        if rows is not None:
            order = order[rows[order]]
        points = np.ascontiguousarray(table.rates[order])
        links = [np.full(len(order), -1, np.int64) for _ in range(4)]
        _insert(points, *links)
        codes, children, _, siblings = links
        return cls(points, order, codes, children, siblings)

    def best(self, rates: Floats) -> int:
        """Return the row with the best score below these rates, float64[e]; -1 if there is none."""
        place = _best(self.points, self.codes, self.children, self.siblings, rates)
        return int(self.rows[place]) if place >= 0 else -1


@compiled
def _insert(points: Floats, codes: Ints, children: Ints, tails: Ints, siblings: Ints) -> None:
    for place in range(1, len(points)):
        parent = 0
        while True:
            code = 0
            for stream in range(points.shape[1]):
                if points[place, stream] >= points[parent, stream]:
                    code |= 1 << stream
            child = children[parent]
            while child >= 0 and codes[child] != code:
                child = siblings[child]
            if child < 0:
                break
            parent = child
        codes[place] = code
        if tails[parent] < 0:
            children[parent] = place
        else:
            siblings[tails[parent]] = place
        tails[parent] = place


@compiled
def _best(points: Floats, codes: Ints, children: Ints, siblings: Ints, rates: Floats) -> int:
    best = len(points)
    stack = [0]
    while len(stack) > 0:
        place = stack.pop()
        # Points below another one have worse scores, and later siblings than earlier ones.
        if place >= best:
            continue
        reach = 0
        for stream in range(points.shape[1]):
            if rates[stream] >= points[place, stream]:
                reach |= 1 << stream
        if reach == (1 << points.shape[1]) - 1:
            best = place
            continue
        child = children[place]
        while child >= 0:
            # A region above the point in a stream in which the rates are not has no row below.
            if child < best and codes[child] & ~reach == 0:
                stack.append(child)
            child = siblings[child]
    return best if best < len(points) else -1
