import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.errors import TooLarge
from algorithms.lab.shedding.plan_table.region_quadtree import (
    MAX_DEPTH,
    MAX_DIMENSIONS,
    RegionQuadtree,
)

BOUNDS = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=3)


@st.composite
def trees(draw: st.DrawFn) -> RegionQuadtree:
    """Return a tree whose boxes were divided in a random order."""
    tree = RegionQuadtree(np.array(draw(BOUNDS)))
    for number in draw(st.lists(st.integers(0, 10_000), max_size=8)):
        leaves = list(tree.leaves())
        tree.divide(leaves[number % len(leaves)])
    return tree


@st.composite
def points(draw: st.DrawFn, tree: RegionQuadtree) -> list[float]:
    """Return rates within the bounds, often on borders of boxes."""
    shares = [
        draw(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]) | st.floats(0, 1)) for _ in tree.bounds
    ]
    return [
        min(bound, bound * share) for bound, share in zip(tree.bounds.tolist(), shares, strict=True)
    ]


@given(st.data())
def test_each_point_is_in_exactly_one_box(data: st.DataObject) -> None:
    """So the boxes are disjoint and cover the space; the index returns the box of a point."""
    tree = data.draw(trees())
    rates = np.array(data.draw(points(tree)))
    leaves = list(tree.leaves())
    low, stop = tree.intervals(leaves)
    inside = np.flatnonzero(((low <= rates) & (rates < stop)).all(axis=1))
    assert [leaves[place] for place in inside] == [tree.leaf_at(rates.tolist())]


@given(trees())
def test_the_volumes_of_boxes_sum_to_that_of_the_space(tree: RegionQuadtree) -> None:
    sizes = [tree.top(leaf)[0] - tree.bottom(leaf)[0] for leaf in tree.leaves()]
    assert sum(size ** len(tree.bounds) for size in sizes) == 1.0


@given(trees())
def test_the_bottom_corner_of_a_box_is_in_the_box(tree: RegionQuadtree) -> None:
    for leaf in tree.leaves():
        assert tree.leaf_at(tree.rates(tree.bottom(leaf)).tolist()) == leaf


def test_a_part_with_bit_k_has_the_greater_rates_of_dimension_k() -> None:
    tree = RegionQuadtree(np.array([100.0, 80.0]))
    assert list(tree.divide(0)) == [1, 2, 3, 4]
    assert [tree.rates(tree.bottom(part)).tolist() for part in range(1, 5)] == [
        [0, 0], [50, 0], [0, 40], [50, 40],
    ]  # fmt: skip
    assert tree.rates(tree.top(2)).tolist() == [100, 40]
    assert tree.is_divided(0)
    assert not tree.is_divided(4)
    assert len(tree) == 5


def test_a_space_of_too_many_dimensions_is_rejected() -> None:
    assert len(RegionQuadtree(np.ones(MAX_DIMENSIONS)).divide(0)) == 2**MAX_DIMENSIONS
    with pytest.raises(TooLarge, match="at most 12 inputs"):
        RegionQuadtree(np.ones(MAX_DIMENSIONS + 1))


def test_corners_are_exact_down_to_the_smallest_box() -> None:
    tree = RegionQuadtree(np.array([1.0]))
    box = 0
    for _ in range(MAX_DEPTH):
        box = tree.divide(box)[-1]
    assert (tree.bottom(box), tree.top(box)) == ((1.0 - 0.5**MAX_DEPTH,), (1.0,))
    with pytest.raises(TooLarge, match="raise epsilon"):
        tree.divide(box)
