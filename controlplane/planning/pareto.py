"""Pareto-optimal points: those that no other point dominates."""

from collections.abc import Sequence
from operator import le

Point = tuple[float, ...]


def pareto(points: Sequence[Point]) -> list[bool]:
    """Return of each point whether no other is as small in every figure and smaller in one.

    Equal points stand or fall together. Exact: what could beat a point comes before it in
    lexicographic order, and so is found among those kept so far.
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
