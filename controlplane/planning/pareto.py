"""Pareto-optimal points."""

from collections.abc import Sequence
from operator import le

Point = tuple[float, ...]


def pareto(points: Sequence[Point]) -> list[bool]:
    """Return for each point whether no other point dominates it.

    A point dominates another if no figure is larger and one is smaller. A dominating point precedes
    the other one in lexicographic order, so each point is compared with earlier optimal ones.
    """
    order = sorted(range(len(points)), key=points.__getitem__)
    front: list[Point] = []
    kept = [False] * len(points)
    for place in order:
        point = points[place]
        if not any(_dominates(other, point) for other in front):
            front.append(point)
            kept[place] = True
    return kept


def _dominates(point: Point, other: Point) -> bool:
    return point != other and all(map(le, point, other))
