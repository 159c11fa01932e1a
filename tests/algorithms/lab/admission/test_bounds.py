"""Lower bounds of the number of bins against the exact number."""

import numpy as np
import pytest

from algorithms.errors import BadProblem
from algorithms.lab.admission.bounds import (
    bin_completion,
    bounds,
    checked_items,
    decreasing_fit,
    l2,
    l3,
    wasted_space,
)


def test_an_instance_whose_l3_is_tight() -> None:
    found = bounds(100, np.array([60, 58, 53, 46, 24, 24, 22]))
    assert (found.l2, found.l3, found.optimum) == (3, 4, 4)


def test_an_instance_that_best_fit_misses() -> None:
    items = checked_items(100, [54, 51, 47, 45, 38, 24, 22, 17])
    assert decreasing_fit(items) == 4
    assert bin_completion(items, 3, 4, 10.0) == 3


def test_bounds_hold_on_random_instances_and_l3_is_nearly_always_tight() -> None:
    rng = np.random.default_rng(15)
    tight = 0
    for _ in range(400):
        items = checked_items(100, rng.integers(5, 91, rng.integers(6, 26)))
        lower, upper = l3(items), decreasing_fit(items)
        exact = bin_completion(items, l2(items), upper, 60.0)
        assert exact is not None
        assert wasted_space(items) <= exact
        assert l2(items) <= lower <= exact <= upper
        tight += lower == exact
    assert tight >= 392


def test_no_item_needs_no_bin() -> None:
    found = bounds(10, np.array([]))
    assert (found.l2, found.l3, found.wasted_space, found.optimum) == (0, 0, 0, 0)


@pytest.mark.parametrize(
    ("capacity", "items", "where"),
    [(0, [1], "capacity"), (10, [5, 11], "items[1]"), (10, [-1], "items[0]")],
)
def test_bad_input_is_named(capacity: float, items: list[float], where: str) -> None:
    with pytest.raises(BadProblem) as caught:
        bounds(capacity, np.array(items))
    assert caught.value.where == where
