"""Samples of rates and the combinations within limits, against brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.errors import BadProblem, TooLarge
from algorithms.lab.shedding.fit.sampling import Precision, grid, samples

POSITIVE = st.floats(0.01, 100.0)


@given(POSITIVE, st.floats(0.01, 0.4), st.floats(0.01, 1.0), POSITIVE)
def test_gaps_are_within_spread_and_step(
    top: float, spread: float, loss: float, value: float
) -> None:
    precision = Precision(spread, loss)
    levels = samples(top, precision, value, "inputs.i1")
    assert levels[0] == 0.0
    assert levels[-1] == top
    assert (np.diff(levels) > 0).all()
    step = precision.step(value)
    assert loss / value / 2**0.25 <= step * (1 + 1e-9)
    assert step <= loss / value * (1 + 1e-9)
    lowest = levels[1:] * (1 - spread) - step
    assert (levels[:-1] >= lowest - 1e-12 * top).all()


def test_a_larger_maximum_keeps_the_samples() -> None:
    precision = Precision(0.05, 0.1)
    before, after = (samples(top, precision, 1.0, "inputs.i1") for top in (1.0, 1.1))
    assert after[: len(before) - 1].tolist() == before[:-1].tolist()


def test_streams_without_value_have_one_sample() -> None:
    assert samples(1.0, Precision(0.05, 0.1), 0.0, "inputs.i1").tolist() == [0.0]
    assert samples(0.0, Precision(0.05, 0.1), 1.0, "inputs.i1").tolist() == [0.0]


def test_bounds() -> None:
    with pytest.raises(BadProblem) as error:
        samples(np.inf, Precision(0.05, 0.1), 1.0, "inputs.i1")
    assert error.value.where == "inputs.i1"
    with pytest.raises(TooLarge):
        samples(1e9, Precision(0.0001, 1e-9), 1.0, "inputs.i1")
    levels = [np.linspace(0, 1, 1000)] * 3
    with pytest.raises(TooLarge, match=r"1,000 x 1,000 x 1,000"):
        grid(levels, np.ones((1, 3)) * 0.1, outer=False)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.booleans())
def test_grid_is_that_of_brute_force(data: st.DataObject, outer: bool) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    levels = [np.concatenate([[0.0], np.cumsum(random.random(size - 1))]) for size in sizes]
    limits = random.random((data.draw(st.integers(0, 3)), len(sizes)))

    def fits(places: tuple[int, ...]) -> bool:
        rates = np.array([level[place] for level, place in zip(levels, places, strict=True)])
        return bool((limits @ rates <= 1).all())

    def next_fits(places: tuple[int, ...]) -> bool:
        above = tuple(place + (size > 1) for place, size in zip(places, sizes, strict=True))
        inside = all(place < size for place, size in zip(above, sizes, strict=True))
        return max(sizes) > 1 and inside and fits(above)

    wanted = [
        places
        for places in itertools.product(*map(range, sizes))
        if fits(places) and not (outer and next_fits(places))
    ]
    assert [tuple(row) for row in grid(levels, limits, outer=outer)] == wanted
