"""Which plans are worth a look: those that no other one beats in everything."""

from collections.abc import Sequence

Point = tuple[float, ...]


def pareto(points: Sequence[Point]) -> list[bool]:
    """Tell of each point whether no other is as small in every figure and smaller in one.

    Equal points stand or fall together. Exact: what could beat a point comes before it in
    lexicographic order, and so is found among those kept so far.
    """
    order = sorted(range(len(points)), key=lambda at: points[at])
    front: list[Point] = []
    kept = [False] * len(points)
    for at in order:
        point = points[at]
        if not any(_beats(other, point) for other in front):
            front.append(point)
            kept[at] = True
    return kept


def _beats(one: Point, other: Point) -> bool:
    return one != other and all(mine <= its for mine, its in zip(one, other, strict=True))
